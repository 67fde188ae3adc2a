"""The default encoder on a GPU and on processors: speed, and how far apart the embeddings are.

    python benchmarks/encoders.py --reviews ../shared/data/imdb_reviews.parquet

On every device, embeddings must be the same bits alone, and in batches in another order: the
program fails if they are not.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser

import numpy as np
import pyarrow.parquet as pq
import torch
from threadpoolctl import threadpool_limits

from quietcorpus.indexes.sentences import split
from quietcorpus.transforms.artefacts.encoder import PACKAGED, Encoder, _folder
from quietcorpus.transforms.artefacts.encoder_model import EncoderModel
from quietcorpus.transforms.artefacts.onnx_model import OnnxModel
from quietcorpus.transforms.artefacts.torch_model import TorchModel

ALONE = 200
AT_ONCE = 4096


def embedded(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    return np.concatenate(
        [encoder.encode(sentences[i : i + AT_ONCE]) for i in range(0, len(sentences), AT_ONCE)]
    )


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--reviews", required=True, help="Parquet: text")
    parser.add_argument("--model", default=PACKAGED, help="a folder")
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--on-processors", type=int, default=1000, help="sentences")
    given = parser.parse_args()
    texts = pq.read_table(given.reviews, columns=["text"])["text"].slice(0, given.documents)
    sentences = split(texts.to_pylist(), 64, "en").texts
    few = sentences[: given.on_processors]
    model_folder = _folder("--model", given.model)
    models: dict[str, EncoderModel] = {"ONNX Runtime, one processor": OnnxModel(model_folder)}
    torched = TorchModel.load(model_folder, "float32")
    models[f"PyTorch {torch.__version__}, {torched.inner.device.type}"] = torched
    first = np.empty(0)
    print("| model | sentences | sentences/s | least cosine to the first | largest difference |")
    print("|---|---|---|---|---|")
    for name, model in models.items():
        encoder = Encoder(model, "encoder", model_folder.name)
        some = sentences if "cuda" in name else few
        with threadpool_limits(1):
            embedded(encoder, some)  # which also checks that each length's batches are sound
            begun = time.perf_counter()
            found = embedded(encoder, some)
            seconds = time.perf_counter() - begun
            alone = np.concatenate([encoder.encode([one]) for one in some[:ALONE]])
        order = np.random.default_rng().permutation(len(some))
        turned = embedded(encoder, [some[i] for i in order])
        if not np.array_equal(alone, found[:ALONE]) or not np.array_equal(turned, found[order]):
            sys.exit(f"{name}: an embedding depends on its neighbours")
        first = first if len(first) else found
        cosines = (first * found[: len(first)]).sum(axis=1)
        cosines /= np.linalg.norm(first, axis=1) * np.linalg.norm(found[: len(first)], axis=1)
        furthest = np.abs(first - found[: len(first)]).max()
        print(
            f"| {name} | {len(some):,} | {len(some) / seconds:,.0f} | {cosines.min():.7f} | "
            f"{furthest:.1e} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
