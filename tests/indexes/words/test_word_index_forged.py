"""A word index whose files somebody else has made: none is read beyond its end, or trusted."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from manifests import cover_up
from small_indexes import FILES, WORDS, random_index, refusal

from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.indexes.words.word_table import WordTable


def stored(array: npt.NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def arrow(**columns: Any) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def archived() -> bytes:
    sink = io.BytesIO()
    np.savez(sink, codes=np.ones((7, 2), np.uint64))
    return sink.getvalue()


HASHES = Vocabulary(WORDS).hashes
S = pa.large_string()
TABLE = WordTable.of(pa.array(WORDS, S))
FAULTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "no array": ("vectors.npy", lambda: b"not an array"),
    "pickled": ("vectors.npy", lambda: stored(np.array([{"x": 1}] * 7, dtype=object))),
    "float64": ("vectors.npy", lambda: stored(np.ones((7, 3)))),
    "integers": ("vectors.npy", lambda: stored(np.ones((7, 3), np.int32))),
    "big-endian": ("vectors.npy", lambda: stored(np.ones((7, 3), ">f4"))),
    "fewer vectors": ("vectors.npy", lambda: stored(np.ones((6, 3), np.float32))),
    "flat": ("vectors.npy", lambda: stored(np.ones(21, np.float32))),
    "signed codes": ("codes.npy", lambda: stored(np.ones((7, 2), np.int64))),
    "bytes": ("codes.npy", lambda: stored(np.ones((7, 2), np.uint8))),
    "wider codes": ("codes.npy", lambda: stored(np.ones((7, 4), np.uint64))),
    "no arrow": ("words.arrow", lambda: b"ARROW1"),
    "no hashes": ("words.arrow", lambda: arrow(word=pa.array(WORDS, pa.large_string()))),
    "fewer words": (
        "words.arrow",
        lambda: arrow(word=pa.array(WORDS[:6], pa.large_string()), hash=HASHES[:6]),
    ),
    "no batch of words": (
        "words.arrow",
        lambda: arrow(word=pa.chunked_array([], pa.large_string()), hash=HASHES[:0]),
    ),
    "words in two parts": (
        "words.arrow",
        lambda: arrow(
            word=pa.chunked_array([WORDS[:3], WORDS[3:]], pa.large_string()),
            hash=pa.chunked_array([HASHES[:3], HASHES[3:]]),
        ),
    ),
    "null word": (
        "words.arrow",
        lambda: arrow(word=pa.array([*WORDS[:6], None], pa.large_string()), hash=HASHES),
    ),
    "small strings": ("words.arrow", lambda: arrow(word=pa.array(WORDS), hash=HASHES)),
    "numbers as words": ("words.arrow", lambda: arrow(word=pa.array(range(7)), hash=HASHES)),
    "text as hashes": (
        "words.arrow",
        lambda: arrow(word=pa.array(WORDS, pa.large_string()), hash=WORDS),
    ),
    "wild slots": ("slots.npy", lambda: stored(np.full(16, 1 << 30, np.int32))),
    "negative slots": ("slots.npy", lambda: stored(np.full(16, -5, np.int32))),
    "full slots": ("slots.npy", lambda: stored(np.zeros(16, np.int32))),
    "odd slots": ("slots.npy", lambda: stored(np.full(15, -1, np.int32))),
    "no slots": ("slots.npy", lambda: stored(np.empty(0, np.int32))),
    "long slots": ("slots.npy", lambda: stored(np.full(16, -1, np.int64))),
    "an archive": ("codes.npy", archived),
    "wide bytes": ("words.npy", lambda: stored(TABLE.words.astype(np.uint16))),
    "table of bytes": ("words.npy", lambda: stored(TABLE.words[:, None])),
    "no bytes": ("words.npy", lambda: stored(TABLE.words[:0])),
    "cut bytes": ("words.npy", lambda: stored(TABLE.words[:-1])),
    "more bytes": ("words.npy", lambda: stored(np.append(TABLE.words, TABLE.words[:1]))),
    "another word": ("words.npy", lambda: stored(WordTable.of(pa.array([*WORDS, "x"], S)).words)),
    "flat numbers": ("order.npy", lambda: stored(TABLE.order.ravel())),
    "wide numbers": ("order.npy", lambda: stored(np.zeros((7, 5), np.uint8))),
    "no width": ("order.npy", lambda: stored(np.zeros((7, 0), np.uint8))),
    "wild numbers": ("order.npy", lambda: stored(np.full((7, 4), 255, np.uint8))),
    "equal numbers": ("order.npy", lambda: stored(np.zeros((7, 1), np.uint8))),
    "fewer numbers": ("order.npy", lambda: stored(np.arange(6, dtype=np.uint8)[:, None])),
    "signed numbers": ("order.npy", lambda: stored(TABLE.order.astype(np.int8))),
    "table of slots": ("slots.npy", lambda: stored(np.full((4, 4), -1, np.int32))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_files_of_another_kind_are_refused(tmp_path: Path, fault: str) -> None:
    # Kills: compiled kernels that read beyond an array, or never end, because an index that
    # somebody else has made says so. What lies beyond is private text, and would be released.
    name, content = FAULTS[fault]
    for version in (version for version, files in FILES.items() if name in files):
        folder = random_index(tmp_path / str(version), version)
        cover_up(folder, name, content())
        assert "build it again" in refusal(folder)


@pytest.mark.parametrize(("end", "value"), [(-1, 1 << 20), (3, 1 << 20), (3, -5), (3, 1)])
def test_words_whose_bounds_are_wild_are_refused(tmp_path: Path, end: int, value: int) -> None:
    # Arrow takes the offsets of strings on trust.
    folder = random_index(tmp_path / "index", 1)
    content = (folder / "words.arrow").read_bytes()
    ends = np.cumsum([0, *(len(word.encode()) for word in WORDS)]).astype("<i8")
    start = content.index(ends.tobytes())
    ends[end] = value
    changed = content[:start] + ends.tobytes() + content[start + ends.nbytes :]
    cover_up(folder, "words.arrow", changed)
    assert "build it again" in refusal(folder)
