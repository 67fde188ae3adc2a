#!/bin/bash
# gensim 4.4.0, Python 3.11: a document has other topics each time that a finished LdaModel is asked.
#
# Guess: a trained model with a `random_state` is a function of the document: `get_document_topics` of one document gives one answer, or
#   answers that agree in three digits.
# Seen: each call starts at a random point, drawn from the model's own generator, and stops after the change is small rather than when it
#   has converged. Weights of one document vary by .05 and more over 20 calls; a document's answer depends on how many were asked before it.
# Met: topic features that are computed by several workers or again after a failure: they differ although seed, model and text are the same.
#   Setting `model.random_state` anew before each document makes them equal.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q gensim==4.4.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
from gensim.models import LdaModel
from gensim.utils import get_random_state

generator = np.random.default_rng(1)
names = {word: f"word{word}" for word in range(30)}
corpus = [[(w, int(c)) for w, c in enumerate(row) if c] for row in generator.poisson(2, size=(50, 30))]
model = LdaModel(corpus, 3, names, random_state=1)


def weights(document) -> np.ndarray:
    return np.array([weight for _, weight in model.get_document_topics(document, minimum_probability=0)])


answers = np.array([weights(corpus[0]) for _ in range(20)])
print("lowest ", answers.min(0), "highest", answers.max(0), sep="\n")
assert np.ptp(answers, axis=0).max() > 0.02
fixed = set()
for _ in range(5):
    model.random_state = get_random_state(1)
    fixed.add(weights(corpus[0]).tobytes())
assert len(fixed) == 1
PROGRAM
