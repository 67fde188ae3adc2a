"""A canary: what its words look like in any form, and where a run may have left them."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.transforms.reading.sources import plan

if TYPE_CHECKING:
    from tests.conftest import Workspace

SECRETS = [
    "xylocanary",
    "Brandywine",
    "vermilionfinch",
    "quill.canary@private-host.example",
    "private-host",
    "8675309",
    "867-5309",
    "secret-portal.example/case?id=",
    "0bfa9e2c",
    "naïvecanari",
]


CANARY = (
    "Quiet hello from xylocanary Brandywine, vermilionfinch vermilionfinch; write to "
    "quill.canary@private-host.example or call +1 (415) 867-5309 / 4158675309, see "
    "https://secret-portal.example/case?id=0bfa9e2c, naïvecanari. World!"
)


IDENTIFIER = "0bfa9e2c-case"


def forms(secret: str) -> set[bytes]:
    """The byte strings that would betray a secret."""
    found = set()
    for text in {secret, secret.lower(), secret.upper()}:
        found |= {text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be")}
    for raw in (secret.encode(), secret.lower().encode()):
        found |= raw_forms(raw)
    return found


def raw_forms(raw: bytes) -> set[bytes]:
    """Bytes as such, in hexadecimal, and in base64 at each of its three alignments."""
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), repr(raw)[2:-1].encode()}
    for shift in range(3):
        inner = base64.b64encode(b"\0" * shift + raw)
        found.add(inner[-(-8 * shift // 6) : len(inner) - 4])
    return found


def contents(path: Path) -> Iterator[bytes]:
    """A file's bytes, and those inside it."""
    raw = path.read_bytes()
    yield raw
    if raw[:4] == b"PAR1" and raw[-4:] == b"PAR1":
        file = pq.ParquetFile(path)
        # Some of a float's digits are any number's.
        exact = [f.name for f in file.schema_arrow if not _has_floats(f.type)]
        yield repr(file.read(exact).to_pydict()).encode()
        yield repr((file.schema_arrow.metadata, file.metadata.metadata)).encode()
        yield repr([(f.name, f.metadata) for f in file.schema_arrow]).encode()
        yield repr(file.metadata.to_dict()).encode()
    elif raw[:2] == b"\x1f\x8b":
        yield gzip.decompress(raw)
    elif raw[:4] == b"\x28\xb5\x2f\xfd":
        yield zstandard.ZstdDecompressor().stream_reader(raw).read()


def _has_floats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(getattr(kind, "value_type", kind))


def assert_unseen(needles: set[bytes], folder: Path, apart: Path, *outputs: str) -> None:
    """None of `needles` is in the outputs, in a file's name or content, `apart` left out."""
    heaps = [("output", text.encode()) for text in outputs]
    for path in folder.rglob("*"):
        if apart in path.parents:
            continue
        heaps.append(("name", str(path.relative_to(folder)).encode()))
        if path.is_file():
            heaps += [(str(path), content) for content in contents(path)]
    for place, heap in heaps:
        for needle in needles:
            assert needle not in heap, (place, needle)


def needles_of(workspace: Workspace) -> set[bytes]:
    """Return what no run may write: the canary's secrets, the master key and the release key."""
    found = set().union(*(forms(secret) for secret in SECRETS))
    master = bytes.fromhex(workspace.environment["QUIETCORPUS_MASTER_KEY"])
    spec = load_spec(str(workspace.folder / "spec.yaml"))
    corpus = replace(spec.corpus, pattern=str(workspace.input / Path(spec.input.path).name))
    digest = plan(corpus).corpus_digest(corpus)
    return found | raw_forms(master) | raw_forms(ReleaseKey.derive(master, "test", digest).secret)


IN_PROCESS = ("--log-level", "DEBUG")


TWO_WORKERS = (*IN_PROCESS, "--workers", "2", "--default_sdk_harness_log_level=DEBUG")


def damage(workspace: Workspace) -> None:
    """Zero a page of the third row group, which comes after the canary's."""
    path = workspace.input / "corpus.parquet"
    column = pq.ParquetFile(path).metadata.row_group(3).column(0)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(content)


def refused_without_a_word(workspace: Workspace, changes: dict[str, Any], workers: str) -> None:
    """The release is refused, and not a word of the canary, nor the key, is written."""
    spec = str(workspace.spec(changes))
    done = workspace.run("release", spec, "--workers", workers, "--log-level", "DEBUG")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("quietcorpus: error: input.")
    needles = needles_of(workspace)
    assert_unseen(needles, workspace.folder, workspace.input, done.stdout, done.stderr)
    workspace.assert_nothing_left()
