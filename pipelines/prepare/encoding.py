"""Embeddings of public texts, by this process or by Ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.errors import require_installed

from ..runners.parallel import processors, ray_session

_FEW = 2_048  # texts that one process encodes sooner than Ray starts
_CHUNK = 512  # texts that a worker of Ray gets at a time
_CHUNK_HERE = 128  # texts that this process encodes at a time


def require_installed_ray() -> None:
    """Raise InputError if RAY_ADDRESS names a cluster, and Ray is not installed."""
    if os.environ.get("RAY_ADDRESS"):
        require_installed("ray", key="quietcorpus", extra="ray")


@contextmanager
def session(source: EncoderSource | None, texts: int) -> Iterator[Any]:
    """Yield Ray, if it is to encode this number of texts, or None if this process is to do it.

    Ray does so on the cluster that RAY_ADDRESS names. Without one, it does so on this machine, if
    there are many texts and it is installed. An encoder without a source takes no cluster.
    """
    few = not os.environ.get("RAY_ADDRESS") and (texts <= _FEW or find_spec("ray") is None)
    if source is None or few:
        yield None
        return
    with ray_session(processors(), work="build") as ray:
        yield ray


@contextmanager
def silent_ray_data() -> Iterator[None]:
    """Silence Ray Data, which would show bars and log each of its steps."""
    import ray.data

    context, logger = ray.data.DataContext.get_current(), logging.getLogger("ray.data")
    before = context.enable_progress_bars, logger.level
    context.enable_progress_bars = False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        context.enable_progress_bars = before[0]
        logger.setLevel(before[1])


def encode(
    ray: Any,
    source: EncoderSource | None,
    encoder: Encoder | Lsa,
    texts: Sequence[str],
    advance: Callable[[int], object],
) -> npt.NDArray[np.float32]:
    """Return the embedding of every text, float32 (n, d); tell how many more are done.

    `ray` is what `session` yields, and `encoder` what `source`, if there is one, opens to.
    """
    if ray is None or source is None:
        return _here(encoder, texts, advance)
    return _by_ray(ray, source, texts, advance)


def _here(
    encoder: Encoder | Lsa, texts: Sequence[str], advance: Callable[[int], object]
) -> npt.NDArray[np.float32]:
    parts = []
    for start in range(0, len(texts), _CHUNK_HERE):
        parts.append(encoder.encode(texts[start : start + _CHUNK_HERE]))
        advance(len(parts[-1]))
    return np.concatenate(parts)


@silent_ray_data()
def _by_ray(
    ray: Any, source: EncoderSource, texts: Sequence[str], advance: Callable[[int], object]
) -> npt.NDArray[np.float32]:
    """Return the same, bit by bit, by a cluster of Ray: a row depends on its own text alone."""
    import ray.data as ray_data

    numbers = pa.array(range(len(texts)), pa.int64())
    table = pa.table({"number": numbers, "text": pa.array(texts, pa.large_string())})
    workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
    # Cut the table here: a Ray task for it would wait for a processor, and actors hold them all.
    parts = [table.slice(start, _CHUNK) for start in range(0, len(texts), _CHUNK)]
    encoded = ray_data.from_arrow(parts).map_batches(
        _Encode,
        fn_kwargs={"source": source},
        batch_size=_CHUNK,
        batch_format="pyarrow",
        compute=ray_data.ActorPoolStrategy(size=min(workers, len(parts))),
    )
    found = None
    for batch in encoded.iter_batches(batch_size=_CHUNK, batch_format="numpy"):
        embeddings = np.stack(batch["embedding"])
        if found is None:
            found = np.empty((len(texts), embeddings.shape[1]), dtype=np.float32)
        found[batch["number"]] = embeddings
        advance(len(embeddings))
    assert found is not None
    return found


class _Encode:
    """An actor of Ray Data: its process loads the encoder once, for many chunks of texts."""

    def __call__(self, chunk: pa.Table, source: EncoderSource) -> pa.Table:
        found = source.open().encode(chunk["text"].to_pylist())
        return pa.table({"number": chunk["number"], "embedding": list(found)})
