#!/bin/bash
# scikit-learn 1.9.1, scipy 1.17.1, Python 3.11: equal sparse matrices have different weights by TfidfTransformer.
#
# Guess: a sparse matrix means its values. Zeros that are stored, and an entry that is stored in two parts, change the speed and nothing
#   else: estimators of scikit-learn sum and drop them, or look at values.
# Seen: document frequencies are numbers of stored entries. A stored zero counts as a document with the word, a count that is stored as 1 +
#   1 as two documents; idf can fall below 1, which it never does for a real count. With `sublinear_tf` the parts have logarithms of their
#   own.
# Met: noisy bags of words whose negative counts were clipped to 0 in `.data`; bags made by joining chunks of one document. All words then
#   seem to be in all documents.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer

counts = np.array([[2, 2, 0], [0, 3, 0], [0, 1, 4]], float)
plain = csr_matrix(counts)
zeros = csr_matrix((counts.ravel(), np.tile([0, 1, 2], 3), [0, 3, 6, 9]), shape=(3, 3))
parts = csr_matrix(([2, 1.0, 1, 3, 1, 4], [0, 1, 1, 1, 1, 2], [0, 3, 4, 6]), shape=(3, 3))
assert (zeros != plain).nnz == 0
assert (parts.toarray() == counts).all()

weights = {}
for name, matrix in (("plain", plain), ("zeros", zeros), ("parts", parts)):
    weights[name] = TfidfTransformer().fit(matrix).idf_
    print(name, weights[name].round(3))
assert np.allclose(weights["plain"], [1 + np.log(2), 1, 1 + np.log(2)])
assert np.allclose(weights["zeros"], 1)
assert weights["parts"][1] < 1
scale = TfidfTransformer(use_idf=False, norm=None, sublinear_tf=True)
logarithms = [scale.fit_transform(matrix) for matrix in (plain, parts)]
print("sublinear", *(float(m[0, 1]) for m in logarithms))
assert abs(float(logarithms[0][0, 1]) - (1 + np.log(2))) < 1e-9
assert float(logarithms[1][0, 1]) == 2
PROGRAM
