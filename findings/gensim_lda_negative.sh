#!/bin/bash
# gensim 4.4.0, Python 3.11: LdaModel takes negative counts, and its topics have negative probabilities, or are NaN.
#
# Guess: counts below 0 are refused, as by scikit-learn's LatentDirichletAllocation (ValueError); or they count as 0.
# Seen: training ends without an error. Under two-sided geometric noise of epsilon 1 topics have negative probabilities. One document whose
#   counts sum to -58 turns every number of every topic to NaN, whatever the other 49 documents are. Warnings of NumPy are the only sign.
# Met: bags of words with two-sided noise, which are unbiased only while negative counts stay; pipelines that take what runs through for
#   valid. Clip, or use a model for noisy counts.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q gensim==4.4.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import warnings

import numpy as np
from gensim.models import LdaModel

warnings.simplefilter("ignore")
generator = np.random.default_rng(1)


def topics(counts: np.ndarray) -> np.ndarray:
    names = {word: f"word{word}" for word in range(counts.shape[1])}
    corpus = [[(word, count) for word, count in enumerate(row) if count] for row in counts]
    return LdaModel(corpus, 3, names, random_state=1).get_topics()


counts = generator.poisson(2, size=(50, 30)).astype(float)
assert topics(counts).min() > 0
one = counts.copy()
one[7] -= 4
print(f"one document sums to {one[7].sum():.0f}: {np.isnan(topics(one)).mean():.0%} of the topics is NaN")
assert np.isnan(topics(one)).all()

sparse = generator.poisson(0.3, size=(200, 300)).astype(float)
noise = generator.geometric(1 - np.exp(-1), (2, *sparse.shape))
noisy = topics(sparse + noise[0] - noise[1])
print(f"epsilon 1: the least probability of a word is {noisy.min():.4f}")
assert np.isnan(noisy).any() or noisy.min() < 0
PROGRAM
