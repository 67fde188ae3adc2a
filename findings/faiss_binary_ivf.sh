#!/bin/bash
# faiss-cpu 1.15.1, Python 3.11: a binary IVF index that looks at all lists is not the flat one, and without its heap finds nothing.
#
# Guess: with `nprobe` equal to the number of lists, IVF is an exact search: ids equal those of the flat index, as they do for IndexIVFFlat.
#   `use_heap=False` counts distances instead of keeping a heap, with the same neighbours.
# Seen: distances are equal, and of the ids an eighth is not: of codes at equal Hamming distance, which are many, the flat index takes the
#   lowest id and IVF those of the lists it saw first; half of the answers are other sets. With `use_heap=False` every place is -1, without
#   an error.
# Met: nearest codes by Hamming distance, where ties are the rule: a switch from flat to IVF changes released words although recall of
#   distances is 1.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q faiss-cpu==1.15.1 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import faiss
import numpy as np

faiss.omp_set_num_threads(1)
codes = np.random.default_rng(1).integers(0, 256, (2000, 8), np.uint8)
flat = faiss.IndexBinaryFlat(64)
flat.add(codes)
coarse = faiss.IndexBinaryFlat(64)
lists = faiss.IndexBinaryIVF(coarse, 64, 16)
lists.train(codes)
lists.add(codes)
lists.nprobe = 16

exact, exact_ids = flat.search(codes[:200], 10)
found, found_ids = lists.search(codes[:200], 10)
same = np.mean([set(one) == set(other) for one, other in zip(exact_ids, found_ids)])
print(f"equal distances {np.mean(exact == found):.0%}, ids {np.mean(exact_ids == found_ids):.0%}, sets {same:.0%}")
assert (exact == found).all()
assert np.mean(exact_ids == found_ids) < 0.95
assert same < 0.8
lists.use_heap = False
print("without the heap", lists.search(codes[:1], 3))
assert (lists.search(codes[:200], 10)[1] == -1).all()

vectors = np.random.default_rng(1).normal(size=(2000, 16)).astype(np.float32)
flat, lists = faiss.index_factory(16, "Flat"), faiss.index_factory(16, "IVF16,Flat")
for index in (flat, lists):
    index.train(vectors)
    index.add(vectors)
lists.nprobe = 16
assert (flat.search(vectors[:200], 10)[1] == lists.search(vectors[:200], 10)[1]).all()
PROGRAM
