"""No bits serve two draws, in a release of any kind and in forks of one process.

Every source of noise reads blocks of a keyed stream. Here all blocks that a release reads are
listed: a lane that is used twice, and an address that two documents, parts or steps share, show as
a block that is read twice. Each such fault is planted, too. What is not keyed comes from the
operating system, and is drawn anew in every fork.
"""

from __future__ import annotations

import io
import itertools
import os
import pickle
import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from audited_releases import NAMES, released_here
from golden_releases import publish
from mutated import Mutation, plant

from quietcorpus.mechanisms.bags.histogram import ThresholdedVocabulary
from quietcorpus.mechanisms.keystream import Keystream, ReleaseKey
from quietcorpus.mechanisms.noise import uniform
from quietcorpus.mechanisms.noise.euclidean_noise import EuclideanNoise
from quietcorpus.mechanisms.noise.exponential import ExponentialMechanism
from quietcorpus.mechanisms.noise.geometric import DenseNoise, SparseNoise
from quietcorpus.mechanisms.users.clipped_sum import ClippedSum, dither
from quietcorpus.mechanisms.votes.resampling import Resampling
from quietcorpus.mechanisms.words import brr, madlib, vickrey
from quietcorpus.pipelines.environment import keys
from quietcorpus.transforms.sealed import SealedSink

Blocks = dict[bytes, list[bytes]]
"""The blocks that were read, in order, by the key of their stream."""


@contextmanager
def read_blocks() -> Iterator[Blocks]:
    """Record the blocks that are read in this process."""
    found: Blocks = defaultdict(list)
    start, encrypt = Keystream.__init__, Keystream._encrypt
    own: dict[int, bytes] = {}
    held = []

    def started(self: Keystream, address_key: bytes, block_key: bytes) -> None:
        start(self, address_key, block_key)
        own[id(self)] = block_key
        held.append(self)  # or another might get its identity

    def encrypted(self: Keystream, plain: Any) -> Any:
        raw = np.ascontiguousarray(plain).tobytes()
        found[own[id(self)]] += [raw[i : i + 16] for i in range(0, len(raw), 16)]
        return encrypt(self, plain)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Keystream, "__init__", started)
        patch.setattr(Keystream, "_encrypt", encrypted)
        yield found


def read_twice(name: str) -> int:
    """Make a release anew; return how many of the blocks that it reads are read before."""
    shutil.rmtree(f"out-{name}", ignore_errors=True)
    with read_blocks() as blocks:
        publish(name)
    assert blocks
    return sum(len(read) - len(set(read)) for read in blocks.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with released_here(tmp_path_factory.mktemp("bits")):
        yield


@pytest.mark.slow  # a release of every kind
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", NAMES)
def test_a_release_reads_no_block_twice(name: str) -> None:
    assert read_twice(name) == 0


ROWS = "transforms.privatizers.rows:document_addresses"
FAULTS = {
    "acceptance by the value's own bits": (
        "sentence-embeddings, projected-mean",
        (
            "mechanisms.noise.euclidean_noise:EuclideanNoise._accepted",
            "ACCEPTANCE_LANE",
            "VALUE_LANE",
        ),
    ),
    "a choice by the noise's bits": (
        "words, vickrey",
        ("mechanisms.words.vickrey:chosen", "lane=_CHOICE_LANE", "lane=0"),
    ),
    "further bits by the first lane": (
        "sentence-embeddings, projected-mean",
        ("mechanisms.noise.exact:ExactSampler.sample", "start, lane + 1)", "start, lane)"),
    ),
    "equal documents share noise": (
        "words",
        (ROWS, "documents.rows.tolist()", "[0] * len(documents.rows)"),
    ),
    "equal documents share a draw": (
        "sentence-embeddings",
        (ROWS, "documents.rows.tolist()", "[0] * len(documents.rows)"),
    ),
    "words of a document share noise": (
        "words, brr",
        ("mechanisms.keystream:Keystream.parts", "^= (", "^= 0 * ("),
    ),
    "attempts share their bits": (
        "words, exponential",
        ("mechanisms.words.distance_draws:DistanceDraws._drawn", "attempt << _ATTEMPT", "0"),
    ),
    "steps share the bits of rounding": (
        "word-embeddings, sgd",
        ("mechanisms.users.sampled_users:SampledUsers._dither", "step * _DITHER_BLOCKS", "0"),
    ),
}


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("fault", FAULTS)
def test_bits_that_are_used_twice_are_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, (function, old, new) = FAULTS[fault]
    plant(Mutation(function, fault, old, new), monkeypatch)
    assert read_twice(name) > 0


EPSILON = Fraction(1)
VECTORS = np.zeros((3, 6), dtype=np.float32)
CODES = np.zeros((3, 1), dtype=np.uint64)
FIRST = np.zeros(3, dtype=np.int64)
TWO = np.zeros((3, 2), dtype=np.int32), np.ones((3, 2))
NORMAL = ClippedSum(Fraction(2))
TERMS = ThresholdedVocabulary(2, EPSILON, Fraction(1, 1000))
SOURCES: dict[str, Callable[[Keystream, Any], Any]] = {
    "geometric": DenseNoise(EPSILON, 9).sample,
    "sparse geometric": SparseNoise(EPSILON, 64).sample,
    "Euclidean": EuclideanNoise(EPSILON, 6).sample,
    "Gaussian": lambda *given: NORMAL.release(np.zeros((3, 9), np.int64), *given),
    "rounding": lambda stream, addresses: dither(stream, addresses[:1], (9,), lane=0),
    "Madlib": lambda *given: madlib.perturb(VECTORS, [EPSILON], FIRST, *given),
    "Vickrey": lambda *given: vickrey.chosen(*TWO, EPSILON / 2, *given),
    "flips": lambda *given: brr.flip(CODES, [EPSILON], FIRST, *given),
    "exponential": lambda *given: ExponentialMechanism(EPSILON, 1).draw(
        np.zeros((3, 9), np.int32), *given
    ),
    "uniform": lambda *given: uniform.uniform(9, *given, lane=0),
    "selection": lambda stream, at: TERMS.select([at.tobytes()] * 3, [1, 2, 3], stream),
    "resampling": lambda stream, at: Resampling(9).draw((at >> np.uint64(40)).astype(int), stream),
}
"""Every source of keyed noise, by the addresses of three documents."""


def forked(function: Callable[[], Any]) -> Any:
    """Call a function in a fork of this process; return what it returns."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(writing, pickle.dumps(function()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        raw = answer.read()
    os.waitpid(child, 0)
    return pickle.loads(raw)


class Drawn(NamedTuple):
    """The blocks that a fork read, and what it drew of them."""

    blocks: set[bytes]
    drawn: bytes


def counting(encrypt: Callable[..., Any]) -> Callable[..., Any]:
    """Make a stream that counts, as most generators do: whatever is asked, it reads the next."""
    state = itertools.count()

    def counted(self: Keystream, plain: Any) -> Any:
        counters = [[next(state), 0] for _ in range(plain.size // 2)]
        return encrypt(self, np.array(counters, dtype=np.uint64))

    return counted


def drawn_in_forks(source: str, fault: Callable[..., Any] | None = None) -> list[Drawn]:
    """Draw in three forks of this process, by its stream: two for the same documents."""
    draw = SOURCES[source]
    with read_blocks() as blocks, pytest.MonkeyPatch.context() as patch:
        if fault:
            patch.setattr(Keystream, "_encrypt", fault(Keystream._encrypt))
        stream = ReleaseKey(bytes(range(32))).stage("forks", 1)
        documents = [stream.addresses("f", range(3 * n, 3 * n + 3), [b""] * 3) for n in range(3)]
        draw(stream, documents[2])  # compiles, and moves on whatever state there is
        blocks.clear()

        def own(number: int) -> Drawn:
            found = pickle.dumps(draw(stream, documents[number]))
            return Drawn({block for read in blocks.values() for block in read}, found)

        return [forked(partial(own, number)) for number in (0, 0, 1)]


@pytest.mark.parametrize("source", SOURCES)
def test_forks_share_no_bits(source: str) -> None:
    # Kills: a stream with a state, which forks go on with from the same place; a draw that does not
    # repeat itself where an engine computes it again.
    first, again, other = drawn_in_forks(source)
    assert first.blocks
    assert first == again
    assert not first.blocks & other.blocks


@pytest.mark.parametrize("source", SOURCES)
def test_forks_that_share_a_state_are_found(source: str) -> None:
    first, _, other = drawn_in_forks(source, counting)
    assert first.blocks & other.blocks


def of_a_run() -> bytes:
    with keys.master_key(local=True) as key:
        return key


def of_a_sealed_file() -> bytes:
    raw = io.BytesIO()
    SealedSink(raw, "name", ReleaseKey(bytes(32)))
    return raw.getvalue()


ENTROPY = {
    "a key of no release": lambda: ReleaseKey.fresh().secret,
    "the key of a run": of_a_run,
    "the salt of a sealed file": of_a_sealed_file,
}
"""What the operating system draws."""


@pytest.mark.parametrize("what", ENTROPY)
def test_forks_draw_keys_of_their_own(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kills: a key that is drawn when a module is loaded, or by a generator of the process's own.
    monkeypatch.delenv(keys.VARIABLE, raising=False)
    draw = ENTROPY[what]
    assert len({draw(), *(forked(draw) for _ in range(3)), draw()}) == 5
    generator = random.Random(1)
    monkeypatch.setattr("secrets.token_bytes", generator.randbytes)
    monkeypatch.setattr("os.urandom", generator.randbytes)
    assert len({forked(draw) for _ in range(3)}) == 1
