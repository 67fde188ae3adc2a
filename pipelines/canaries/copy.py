"""The copy of a corpus, beside which canaries are put before every run."""

from __future__ import annotations

import io
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quietcorpus.transforms.reading.documents import Corpus, Documents
from quietcorpus.transforms.reading.sources import batches
from quietcorpus.transforms.reading.spelling import as_text, spelled

from ..schema.mechanism import MechanismSpec
from ..schema.spec import InputSpec, Spec
from ..schema.values import REASONS
from ..storage import files as storage
from ..storage import places
from ..storage.staging import staging_area
from .game import ID, Coins, Game, id_of

_DOCUMENTS_A_FILE = 1 << 16
_BYTES_A_FILE = 1 << 27
_USER = "mechanism.user"


@dataclass(frozen=True)
class Copy:
    """A copy of a spec's corpus: its readable documents, with the columns that are compared.

    Attributes:
        spec: the spec.
        place: a folder or an object-store URI that no other process uses.
    """

    spec: Spec
    place: str

    def fill(self) -> None:
        """Copy the corpus; raises InputError for one that cannot be read."""
        given = self.spec.corpus
        read_alone = replace(given, id=None, keep=())
        for number, table in enumerate(_tables(read_alone)):
            self._write(f"part-{number:05d}", table)

    def put(self, game: Game, coins: Coins) -> None:
        """Put the canaries beside the corpus, as the coins say, in place of earlier ones."""
        sides = [own[0] if coin else own[1] for own, coin in zip(game.canaries, coins, strict=True)]
        rows = [(number, one) for number, side in enumerate(sides) for one in side]
        columns = {"text": [one.text for _, one in rows], ID: [id_of(number) for number, _ in rows]}
        for _, name in self.spec.mechanism.columns:
            columns[name] = [one.columns[name] for _, one in rows]
        arrays = {name: pa.array(values, pa.large_string()) for name, values in columns.items()}
        self._write("canaries", pa.table(arrays))

    def released(self, name: str, game: Game, mechanism: MechanismSpec | None = None) -> Spec:
        """Return the spec of a release of the copy, into a folder called `name`.

        It has its own id, and so its own key, and the spec's mechanism unless another is given. No
        ledger counts it: the release is never published, and the test deletes it.
        """
        kept = (ID,) if game.linked else ()
        own = {
            "release": f"canaries-{secrets.token_hex(8)}",
            "input": InputSpec(
                path=f"{self.place}/corpus/*.parquet",
                text=self.spec.input.text,
                id=ID if game.linked else None,
                keep=kept,
            ),
            "output": f"{self.place}/{name}",
            "mechanism": mechanism or self.spec.mechanism,
            "rejects": None,
            "checkpoints": None,
            "ledger": None,
            "accept": tuple(REASONS),  # the copy is deleted unseen
        }
        return self.spec.model_copy(update=own)

    def _write(self, name: str, table: pa.Table) -> None:
        sink = io.BytesIO()
        names = [self.spec.input.text if own == "text" else own for own in table.column_names]
        pq.write_table(table.rename_columns(names), sink)
        storage.write_whole(f"{self.place}/corpus/{name}.parquet", sink.getvalue())


@contextmanager
def copied(spec: Spec, work: str | None) -> Iterator[Copy]:
    """Yield an empty copy of a spec's corpus in a separate place, which is deleted at the end.

    The place is below `work`, or in this machine's temporary folder. Copies that killed runs have
    left there are deleted, except in an object store.
    """
    if work is not None:
        storage.probe("work", work)
    if work is None or places.is_local(work):
        # Its lock tells the next run that this one was killed.
        with staging_area(f"{work or tempfile.gettempdir()}/canaries") as folder:
            yield Copy(spec, folder)
        return
    place = f"{work}/canaries-{secrets.token_hex(8)}"
    try:
        yield Copy(spec, place)
    finally:
        storage.delete_folder(place)


def _tables(corpus: Corpus) -> Iterator[pa.Table]:
    """Yield the documents of a corpus, numbered, in tables that fit in memory."""
    held: list[pa.Table] = []
    first = 0
    for documents in batches(corpus):
        held.append(_table(documents, corpus, first + sum(map(len, held))))
        rows, size = sum(map(len, held)), sum(table.nbytes for table in held)
        if rows >= _DOCUMENTS_A_FILE or size >= _BYTES_A_FILE:
            yield pa.concat_tables(held)
            held, first = [], first + rows
    if held:
        yield pa.concat_tables(held)


def _table(documents: Documents, corpus: Corpus, first: int) -> pa.Table:
    """Return documents as a table of strings; users are spelled as a release spells them."""
    own = documents.columns
    ids = np.arange(first, first + len(documents.rows)).astype(str)
    columns = {"text": documents.texts, ID: pa.array(ids.tolist(), pa.large_string())}
    for key, name in corpus.also:
        columns[name] = as_text(own[name])
        if key == _USER:
            columns[name] = pa.array(spelled(own[name], key, name), pa.large_string())
    return pa.table(columns)
