"""A canary document runs through every path; its words are found nowhere but where they may be.

Searched is everything that a run writes: standard output and error at DEBUG, the release, the
rejects, the temporary and the home folder; raw, in other letter cases and encodings, and inside
compressed files.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from canaries import (
    CANARY,
    IDENTIFIER,
    IN_PROCESS,
    TWO_WORKERS,
    assert_unseen,
    damage,
    forms,
    needles_of,
    refused_without_a_word,
)
from machine import WORKERS

if TYPE_CHECKING:
    from tests.conftest import Workspace

OTHERS = ["quiet world hello island alpha"] * 60


def corpus(workspace: Workspace, **options: Any) -> None:
    """A Parquet corpus with the canary in its second row group, in every kind of place."""
    texts = [*OTHERS[:25], CANARY, *OTHERS]
    kept = pa.field("product", pa.string(), metadata={"comment": CANARY})
    schema = pa.schema(
        [pa.field("text", pa.string()), pa.field("case", pa.string()), kept],
        metadata={"description": CANARY},
    )
    table = pa.table(
        {
            "text": texts,
            "case": [IDENTIFIER if text is CANARY else str(i) for i, text in enumerate(texts)],
            "product": ["loan"] * len(texts),
        },
        schema=schema,
    )
    path = workspace.input / "corpus.parquet"
    pq.write_table(table, path, row_group_size=20, use_dictionary=False, **options)


BAG = {
    "mechanism.compression": {"method": "frequency", "size": 2},
    "mechanism.histogram_epsilon": 4,
}
HISTOGRAM = {"mechanism.kind": "histogram", "mechanism.compression": ...}
PRIVATE = {"mechanism.vocabulary": {"private": {"epsilon": 4, "delta": 1e-8}}}
PARQUET = {
    "input": {"path": "input/*.parquet", "id": "case", "keep": ["product"]},
    "rejects": {"path": "rejects", "max_share": 0.5},
}


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        pytest.param(BAG, IN_PROCESS, id="bag-public-1"),
        # A private vocabulary has all that these have.
        pytest.param(BAG, TWO_WORKERS, marks=pytest.mark.nightly, id="bag-public-2"),
        pytest.param(BAG | PRIVATE, IN_PROCESS, id="bag-private-1"),
        pytest.param(BAG | PRIVATE, TWO_WORKERS, marks=pytest.mark.slow, id="bag-private-2"),
        pytest.param(HISTOGRAM, IN_PROCESS, id="histogram-public-1"),
        # A bag's release has a histogram, too.
        pytest.param(
            HISTOGRAM | PRIVATE, TWO_WORKERS, marks=pytest.mark.nightly, id="histogram-private-2"
        ),
    ],
)
def test_a_release_tells_nothing_of_the_canary(
    workspace: Workspace, changes: dict[str, Any], options: tuple[str, ...]
) -> None:
    corpus(workspace)
    done = workspace.release(PARQUET | changes, *options)
    assert "DEBUG" in done.stderr
    needles = needles_of(workspace)
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)
    assert workspace.card()["counts"]["documents"] == len(OTHERS) + 26


@pytest.mark.parametrize(
    ("block", "options"),
    [
        pytest.param({"out_of_vocabulary": "draw"}, IN_PROCESS, id="madlib-1"),
        pytest.param({"mechanism": "brr"}, TWO_WORKERS, marks=pytest.mark.slow, id="brr-2"),
    ],
)
def test_a_release_of_words_tells_nothing_of_the_canary(
    workspace: Workspace,
    words: Callable[..., dict[str, Any]],
    block: dict[str, Any],
    options: tuple[str, ...],
) -> None:
    # At an epsilon that lets every known word through: no secret is hidden by noise.
    corpus(workspace)
    done = workspace.release(PARQUET | words(epsilon=1000, **block), *options)
    assert "DEBUG" in done.stderr
    needles = needles_of(workspace)
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)
    assert len(workspace.rows()) == len(OTHERS) + 26


@pytest.mark.parametrize(
    ("block", "options"),
    [
        pytest.param({"utility": "mean-depth"}, IN_PROCESS, id="deep-candidate-1"),
        pytest.param(
            {"mechanism": "truncation", "utility": ...},
            TWO_WORKERS,
            marks=pytest.mark.slow,
            id="truncation-2",
        ),
        pytest.param(
            {"mechanism": "madlib", "utility": ...},
            IN_PROCESS,
            marks=pytest.mark.slow,
            id="madlib-1",
        ),
    ],
)
def test_a_release_of_embeddings_tells_nothing_of_the_canary(
    workspace: Workspace,
    sentences: Callable[..., dict[str, Any]],
    word_index: Path,
    block: dict[str, Any],
    options: tuple[str, ...],
) -> None:
    # Of sentences, of what the encoder makes of them, and of its libraries' logs.
    corpus(workspace)
    block = block | ({"index": str(word_index)} if block.get("mechanism") == "madlib" else {})
    done = workspace.release(PARQUET | sentences(**block), *options)
    assert "DEBUG" in done.stderr
    needles = needles_of(workspace)
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)
    assert len(workspace.rows()) == len(OTHERS) + 26


@pytest.mark.parametrize("workers", WORKERS)
def test_a_damaged_row_group_tells_nothing(workspace: Workspace, workers: str) -> None:
    corpus(workspace)
    damage(workspace)
    refused_without_a_word(workspace, PARQUET | BAG, workers)


@pytest.mark.parametrize(
    ("mechanism", "workers"),
    # Errors of two processes are those of `test_a_damaged_row_group_tells_nothing`.
    [("brr", "1"), pytest.param("madlib", "2", marks=pytest.mark.nightly)],
)
def test_a_failed_release_of_words_tells_nothing(
    workspace: Workspace, words: Callable[..., dict[str, Any]], mechanism: str, workers: str
) -> None:
    corpus(workspace)
    damage(workspace)
    refused_without_a_word(workspace, PARQUET | words(mechanism=mechanism, epsilon=1000), workers)


def test_a_failed_release_of_embeddings_tells_nothing(
    workspace: Workspace, sentences: Callable[..., dict[str, Any]]
) -> None:
    corpus(workspace)
    damage(workspace)
    refused_without_a_word(workspace, PARQUET | sentences(), "1")


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.nightly)])
def test_a_malformed_line_tells_nothing(workspace: Workspace, workers: str) -> None:
    malformed = ('{"text": "' + CANARY).encode()
    workspace.json_lines([*OTHERS, malformed, *OTHERS])
    refused_without_a_word(workspace, {"rejects": {"path": "rejects", "max_share": 0}}, workers)
    assert list((workspace.folder / "rejects").rglob("*.jsonl"))


def test_too_many_rejects_tell_nothing(workspace: Workspace) -> None:
    lines = [{"text": [CANARY]}, {"text": None, "note": CANARY}, {"note": CANARY}]
    workspace.json_lines(["quiet", *lines, CANARY.encode(), b'{"text": "' + b"\xff" * 9 + b'"}'])
    refused_without_a_word(workspace, {"rejects": {"path": "rejects"}}, "1")


def test_a_repeated_identifier_tells_nothing(workspace: Workspace) -> None:
    workspace.json_lines([{"text": CANARY, "case": IDENTIFIER}] * 2)
    refused_without_a_word(workspace, {"input.id": "case"}, "1")


@pytest.mark.slow
def test_an_unconfigured_key_is_not_written_either(workspace: Workspace) -> None:
    # The fresh key is unknown here, but its variable must not show up with a value.
    spec = str(workspace.spec())
    environment = {"QUIETCORPUS_MASTER_KEY": None}
    arguments = ("release", spec, "--workers", "2", "--log-level", "DEBUG")
    done = workspace.run(*arguments, environment=environment)
    assert done.returncode == 0
    assert "QUIETCORPUS_MASTER_KEY" not in done.stdout + done.stderr


@pytest.mark.parametrize("planted", ["raw", "upper", "hex", "base64", "utf16", "parquet", "gzip"])
def test_the_search_finds_what_is_there(tmp_path: Path, planted: str) -> None:
    # The negative control of all tests above.
    secret = "vermilionfinch"
    path = tmp_path / "file"
    match planted:
        case "parquet":
            pq.write_table(pa.table({"x": [f"a {secret}"]}), path, compression="zstd")
        case "gzip":
            path.write_bytes(gzip.compress(f"a {secret} b".encode()))
        case _:
            raw = f"abcd {secret} b".encode()
            written = {
                "raw": raw,
                "upper": raw.upper(),
                "hex": raw.hex().encode(),
                "base64": base64.b64encode(raw),
                "utf16": raw.decode().encode("utf-16"),
            }
            path.write_bytes(written[planted])
    with pytest.raises(AssertionError):
        assert_unseen(forms(secret), tmp_path, tmp_path / "input")
