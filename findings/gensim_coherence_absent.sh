#!/bin/bash
# gensim 4.4.0, Python 3.11: a topic whose word is in no text of reference has the best coherence of all.
#
# Guess: a word that the texts of reference lack co-occurs with nothing: the topic scores low (as by `u_mass`), or the measure refuses it.
# Seen: by `c_npmi` and `c_uci` the coherence of the topic, and the mean over all topics, is +infinity; by `c_v` it is NaN. A warning of
#   NumPy is the only sign. A word that the dictionary lacks, too, is left out of its topic: one word is left, whose `c_v` is 1, the most
#   there is.
# Met: topics of a release, scored on public texts with a dictionary that both share: noise raises words that occur nowhere, and a sweep
#   over epsilons then prefers the noisiest model.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q gensim==4.4.0
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import math
import warnings

from gensim.corpora import Dictionary
from gensim.models import CoherenceModel

warnings.simplefilter("ignore")
texts = [["tide", "harbour"], ["tide", "boat"], ["harbour", "boat"], ["tide", "harbour", "boat"]]
dictionary = Dictionary([*texts, ["zither"]])
topics = [["tide", "harbour"], ["tide", "zither"]]


def coherence(measure: str) -> tuple[list[float], float]:
    model = CoherenceModel(
        topics=topics,
        texts=texts,
        corpus=[dictionary.doc2bow(text) for text in texts],
        dictionary=dictionary,
        coherence=measure,
        processes=1,
    )
    return [float(each) for each in model.get_coherence_per_topic()], float(model.get_coherence())


found = {measure: coherence(measure) for measure in ("u_mass", "c_uci", "c_npmi", "c_v")}
for measure, (each, mean) in found.items():
    print(measure, each, "mean", mean)
assert found["u_mass"][0][1] < found["u_mass"][0][0]
for measure in ("c_uci", "c_npmi"):
    assert found[measure][0][1] == math.inf
    assert found[measure][1] == math.inf
assert math.isnan(found["c_v"][0][1])
short = CoherenceModel(topics=topics, texts=texts, dictionary=Dictionary(texts), coherence="c_v", processes=1)
print("c_v, a smaller dictionary:", short.get_coherence_per_topic())
assert short.get_coherence_per_topic()[1] > 0.999
PROGRAM
