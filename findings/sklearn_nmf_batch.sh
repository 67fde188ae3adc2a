#!/bin/bash
# scikit-learn 1.9.1, Python 3.11: the topics of a document by `NMF.transform` depend on the documents beside it.
#
# Guess: `transform` keeps the components fixed, so each row is a problem of its own: a document has one answer, alone or in a batch, to
#   within rounding, as it has by `LatentDirichletAllocation.transform` and by NMF's other solver.
# Seen: with `solver="mu"` (which Kullback-Leibler losses need) and by MiniBatchNMF, weights of a document change by up to 2 % of the
#   largest. The start is computed from the mean of the whole batch, and iterations stop by the error of the whole batch. With `solver="cd"`
#   a row does not depend on its batch.
# Met: features of documents that are computed in shards of any size; anything that takes a document's vector for a function of that
#   document, sensitivity bounds included.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
from sklearn.decomposition import NMF, LatentDirichletAllocation, MiniBatchNMF

generator = np.random.default_rng(1)
counts = generator.poisson(generator.gamma(0.3, 2, size=(60, 40))).astype(float)


def moved(model) -> float:
    """How far a row alone is from the same row in the batch, as a share of its largest weight."""
    model.fit(counts)
    batch = model.transform(counts)
    alone = np.vstack([model.transform(counts[i : i + 1]) for i in range(len(counts))])
    return float((np.abs(alone - batch).max(1) / batch.max(1)).max())


found = {
    "mu": moved(NMF(4, solver="mu", beta_loss="kullback-leibler", random_state=1, max_iter=2000)),
    "mini-batches": moved(MiniBatchNMF(4, random_state=1, max_iter=2000)),
    "cd": moved(NMF(4, random_state=1, max_iter=2000)),
    "LDA": moved(LatentDirichletAllocation(4, random_state=1)),
}
print(found)
assert found["mu"] > 1e-3
assert found["mini-batches"] > 1e-4
assert found["cd"] < 1e-4
assert found["LDA"] < 1e-6
PROGRAM
