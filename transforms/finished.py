"""Finished shards: a record of each, by which a repetition of its run keeps the shard.

A run that is killed leaves sealed data files in its staging area. Noise is keyed by position, so a
shard's bytes are a function of the run's identity, the shard's splits and the codebook, whatever
the engine, the number of workers and the try. When a shard's file is written, a record of it is
left in the staging area: what the shard adds to the checks of the whole corpus (the tally, the
rejects and the ids' digests), and its file's place and digest. A repetition takes them from there
instead of reading the documents, and makes every shard again of which that cannot be proved.

Guarantee:
    A shard is kept only if its record and its data file were sealed under the release key, by a run
    of this identity, for these splits and this codebook. All of that is associated data of the
    record's seal (AES-256-GCM, `sealed`), with the record's own name, which no other try has; the
    record holds the SHA-256 of the data file, which is read whole.

    So an attacker who can write to the staging area, and has no key, decides at most which shards
    are made again. They cannot change what is released: a change, a truncation, a file under
    another's name or of another run does not open, and a file that opens holds the bytes that this
    run would make. Nor do they get another draw of any noise, since a shard that is made again is
    the same.

    A key that is drawn afresh for one run opens nothing that another one has left.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import orjson
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from quietcorpus.mechanisms.encoding import encode
from quietcorpus.mechanisms.keystream import ReleaseKey

from .errors import StageError
from .reading.documents import Reject
from .sealed import seal, unseal, wide
from .shards import Seen, Shard, Tally, Written, staged_content

_PLAIN = CompressionTypes.UNCOMPRESSED
_NAME = re.compile(r"([0-9]{5,9})\.[0-9a-f]{32}")


def records_in(staging: str, identity: str) -> str:
    """Return the folder, in a staging area, of the records of the runs of an identity."""
    return f"{staging}/finished/{identity}"


def with_records(shards: Iterable[Shard], records: Iterable[str]) -> list[Shard]:
    """Return shards, each with those of these records that are named after it."""
    named: dict[int, list[str]] = {}
    for uri in records:
        if found := _NAME.fullmatch(uri.rpartition("/")[2]):
            named.setdefault(int(found[1]), []).append(uri)
    return [replace(shard, records=tuple(named.get(shard.number, ()))) for shard in shards]


@dataclass(frozen=True)
class FinishedShards:
    """The records of the shards that a run finishes.

    Attributes:
        staging: the staging area of the run.
        identity: the run's identity, a keyed digest of all that its bytes depend on.
        earlier: the staging areas of earlier tries, of which shards may be kept.
    """

    staging: str
    identity: str
    earlier: tuple[str, ...] = ()

    def record(
        self, shard: Shard, codebook: str | None, made: Written, seen: Seen, key: ReleaseKey
    ) -> None:
        """Leave the record of a shard whose data file is written.

        `codebook` is the digest of all that the shard was made with, besides the spec.
        """
        uri = f"{records_in(self.staging, self.identity)}/{shard.number:05d}.{uuid.uuid4().hex}"
        sealed = seal(_content(made, seen), self._name(uri, shard, codebook), key)
        with FileSystems.create(uri, compression_type=_PLAIN) as stream:
            stream.write(sealed)

    def kept(
        self, shard: Shard, codebook: str | None, path: str, seen: Seen, key: ReleaseKey
    ) -> tuple[Written, Seen] | None:
        """Return a shard's data file and what was seen of it, or None if it is to be made.

        Args:
            shard: the shard, with the records that may be its own.
            codebook: as `record` takes it.
            path: the data file's in the release.
            seen: the values seen before any document is read.
            key: the release key.
        """
        for uri in shard.records:
            # Whatever is wrong with a record, with its file or their store: the shard is made.
            with suppress(Exception):
                with FileSystems.open(uri, compression_type=_PLAIN) as stream:
                    sealed = stream.read()
                content = unseal(sealed, self._name(uri, shard, codebook), key)
                written, found = _restored(content, path, seen)
                for _ in staged_content(written, key):
                    pass
                return written, found
        return None

    def _name(self, uri: str, shard: Shard, codebook: str | None) -> str:
        """Return the name to which a record's seal is bound."""
        bound = encode(
            {
                "identity": self.identity,
                "shard": shard.number,
                "splits": [asdict(split) for split in shard.splits],
                "codebook": codebook,
            }
        )
        return f"{uri} {hashlib.sha256(bound).hexdigest()}"


def _content(made: Written, seen: Seen) -> bytes:
    """Return a record's content, whose length tells nothing of the texts."""
    return orjson.dumps(
        {
            "staged": made.staged,
            "sha256": made.sha256,
            "rows": wide(made.rows),
            "tally": replace(seen.tally, parts=()).encoded(),
            "rejects": seen.rejects,
            "identifiers": base64.b64encode(seen.identifiers.digests.tobytes()).decode(),
        }
    )


def _restored(content: bytes, path: str, seen: Seen) -> tuple[Written, Seen]:
    """Return what `_content` was given; raises StageError for a file that is not of a whole shard.

    The splits that were read are not taken from a record: its seal is bound to them.
    """
    fields: dict[str, Any] = orjson.loads(content)
    tally = seen.tally + Tally.decoded(fields["tally"])
    written = Written(path, fields["staged"], fields["sha256"], int(fields["rows"]))
    if written.rows != tally.documents:
        raise StageError(f"{path}: the staged file has not a row for every document")
    digests = np.frombuffer(base64.b64decode(fields["identifiers"]), np.uint64).reshape(-1, 2)
    identifiers = seen.identifiers.with_digests(digests)
    return written, Seen(identifiers, tally, [Reject(**one) for one in fields["rejects"]])
