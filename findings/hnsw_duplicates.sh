#!/bin/bash
# hnswlib 0.8.0, faiss-cpu 1.15.1, usearch 2.26.6: copies of one vector hide other vectors from a graph index.
#
# Guess: copies cost room and fill the answers to queries near them. A vector that is none of them is found as before: among 1,000 vectors,
#   each is its own nearest neighbour at the usual settings in 99 % of searches or more.
# Seen: so it is without copies. Beside 100 zero vectors, a tenth of the index, fewer than half of the others find themselves: some 10 % by
#   hnswlib, 3 % by FAISS, 20 % by usearch. Copies link to copies, all paths that lead to the middle end among them, and most of the graph
#   cannot be reached. No error, and no shorter answer. An exact search is not affected.
# Met: embeddings with boilerplate: static encoders give the zero vector for empty texts and for texts of unknown words, and signatures and
#   "n/a" have one vector each. The copies are few, and the damage is everywhere; deduplicate before the index is built.
# Exits with another status than 0 if the behaviour changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q hnswlib==0.8.0 faiss-cpu==1.15.1 usearch==2.26.6 numpy==2.4.6
cd "$work"
"$work/venv/bin/python" - <<'PROGRAM'
import faiss
import hnswlib
import numpy as np
from usearch.index import Index

faiss.omp_set_num_threads(1)
generator = np.random.default_rng(1)
vectors = generator.normal(size=(1000, 32)).astype(np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)


def own_neighbours(items: np.ndarray, places: np.ndarray) -> dict[str, float]:
    """The share of `vectors` that each library finds at their places among the items."""
    by_hnswlib = hnswlib.Index("l2", 32)
    by_hnswlib.init_index(len(items), random_seed=1)
    by_hnswlib.add_items(items, np.arange(len(items)), num_threads=1)
    by_hnswlib.set_ef(50)
    by_faiss = faiss.IndexHNSWFlat(32, 16)
    by_faiss.add(items)
    by_faiss.hnsw.efSearch = 50
    by_usearch = Index(ndim=32, metric="l2sq", dtype="f32")
    by_usearch.add(np.arange(len(items)), items, threads=1)
    found = {
        "hnswlib": by_hnswlib.knn_query(vectors, k=1, num_threads=1)[0][:, 0],
        "faiss": by_faiss.search(vectors, 1)[1][:, 0],
        "usearch": by_usearch.search(vectors, 1, threads=1).keys[:, 0],
    }
    return {library: float(np.mean(keys == places)) for library, keys in found.items()}


alone = own_neighbours(vectors, np.arange(1000))
order = generator.permutation(1100)
mixed = own_neighbours(np.vstack([vectors, np.zeros((100, 32), np.float32)])[order], np.argsort(order)[:1000])
print("alone", alone, "beside 100 zero vectors", mixed, sep="\n")
assert min(alone.values()) > 0.99
assert max(mixed.values()) < 0.5
PROGRAM
