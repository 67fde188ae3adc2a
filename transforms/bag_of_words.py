"""The release of bags of words: a compression map, then one shard after another."""

from __future__ import annotations

import binascii
import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import compression
from indexes.compression import Method
from indexes.embeddings import EmbeddingError, read_vectors
from indexes.tokenizer import tokenize
from indexes.vocabulary import Vocabulary
from mechanisms.bag_of_words import Accounting, BagOfWords, add_noise
from mechanisms.bags import Bags, clip, permute
from mechanisms.decompression import Decompression
from mechanisms.keystream import Addresses, ReleaseKey
from transforms.artefacts import Artefact
from transforms.documents import BATCH_DOCUMENTS, Corpus, Documents
from transforms.errors import InputError, redacted
from transforms.identifiers import Identifiers
from transforms.metrics import Progress
from transforms.shards import (
    ROW_GROUP_ROWS,
    RejectLog,
    Seen,
    Shard,
    write_tables,
)
from transforms.sources import read
from transforms.vocabulary import KeySource

Counts = npt.NDArray[np.int64]

_ENTRIES_AT_ONCE = 1 << 22
_ORDER = "\0order"  # a name that no column of a corpus has

# Lanes of the stage's keystream that the noise does not use.
_SPREAD_LANE, _ID_LANE = 254, 255


@dataclass(frozen=True)
class Compression:
    """How the map is made: the method, its number of bins, and where its vectors are."""

    method: Method
    size: int | None = None
    vectors: Artefact | None = None


@dataclass(frozen=True)
class Codebook:
    """All that is public about a release before its documents: vocabulary, map and weights."""

    vocabulary: Vocabulary
    bins: npt.NDArray[np.int32]
    size: int
    weights: Counts | None

    @property
    def digest(self) -> str:
        """SHA-256 of the vocabulary and the map, hexadecimal."""
        return hashlib.sha256(self.vocabulary.digest.encode() + self.bins.tobytes()).hexdigest()


class BuildCodebook(beam.DoFn):
    """One `Codebook` from the vocabulary and the noisy histogram, both released already."""

    def __init__(self, spec: Compression, key: KeySource) -> None:
        self._spec = spec
        self._key = key

    @redacted
    def process(
        self, _: object, vocabulary: Vocabulary, weights: Counts | None = None
    ) -> Iterator[Codebook]:
        terms = len(vocabulary)
        size = self._spec.size or terms
        if size > terms:
            raise InputError(
                f"mechanism.compression.size: {size} is larger than the vocabulary of {terms} "
                f"terms; give at most {terms}"
            )
        stream = self._key().stage("compression", vocabulary.digest.encode())
        seed = stream.addresses(self._spec.method.value, [size], [b""])[0]
        bins = self._bins(vocabulary, weights, size, np.random.default_rng(seed))
        yield Codebook(vocabulary, bins, size, weights)

    def _bins(
        self,
        vocabulary: Vocabulary,
        weights: Counts | None,
        size: int,
        generator: np.random.Generator,
    ) -> compression.Bins:
        match self._spec.method:
            case Method.NONE:
                return compression.identity(len(vocabulary))
            case Method.RANDOM:
                return compression.random(len(vocabulary), size, generator)
            case Method.FREQUENCY:
                assert weights is not None
                return compression.frequency(weights, size)
            case Method.EMBEDDING_CLUSTER:
                return compression.embedding_cluster(self._vectors(vocabulary), size, generator)
            case Method.EMBEDDING_DISPERSE:
                return compression.embedding_disperse(self._vectors(vocabulary), size, generator)

    def _vectors(self, vocabulary: Vocabulary) -> npt.NDArray[np.float32]:
        artefact = self._spec.vectors
        assert artefact is not None
        try:
            return read_vectors(artefact.lines(), vocabulary.terms.to_pylist())
        except InputError:
            raise
        except EmbeddingError as error:
            raise InputError(f"{artefact.key}: {artefact.uri} {error}") from None
        except Exception:  # every object store's client has exceptions of its own
            raise InputError(
                f"{artefact.key}: {artefact.uri} cannot be read; check the path"
            ) from None


@dataclass(frozen=True)
class BagOfWordsParameters:
    """What the spec says of the documents' mechanism, before the vocabulary's size is known."""

    precision: int
    epsilon: Fraction
    accounting: Accounting

    def mechanism(self, vocabulary_size: int, bins: int) -> BagOfWords:
        """The mechanism for a vocabulary and a map of these sizes."""
        return BagOfWords(self.precision, self.epsilon, vocabulary_size, bins, self.accounting)


class Privatizer:
    """Batches of documents in, tables of released rows out: the whole per-document path."""

    def __init__(
        self, parameters: BagOfWordsParameters, codebook: Codebook, key: ReleaseKey
    ) -> None:
        self._codebook = codebook
        mechanism = parameters.mechanism(len(codebook.vocabulary), codebook.size)
        self._noise = mechanism.noise()
        # Sizes follow from the noise alone: what is published in one piece must not tell how
        # long the texts in it are.
        expected = mechanism.expected_noise_terms
        self.row_group_rows = int(np.clip(_ENTRIES_AT_ONCE // expected, 64, ROW_GROUP_ROWS))
        self.documents_at_once = min(self.row_group_rows, BATCH_DOCUMENTS)
        self._stream = key.stage("documents", repr((mechanism, codebook.digest)).encode())
        self._decompression = (
            None
            if codebook.weights is None
            else Decompression(codebook.bins, codebook.weights, codebook.size)
        )

    def release(self, documents: Documents) -> tuple[pa.Table, int]:
        """The released rows, in input order, under fresh ids; and the number of tokens read."""
        tokens = tokenize(documents.texts)
        offsets, terms = self._codebook.vocabulary.look_up(tokens)
        addresses = self.addresses(documents, offsets, terms)
        size, bins = self._codebook.size, self._codebook.bins
        bags = clip(add_noise(self._noise, size, self._stream, addresses, offsets, bins[terms]))
        if self._decompression is not None and size < len(bins):
            bags = self._decompression.expand(bags, self.words(addresses))
        return self.rows(addresses, bags), len(tokens.starts)

    def addresses(
        self, documents: Documents, offsets: npt.NDArray[np.int64], terms: npt.NDArray[np.int32]
    ) -> Addresses:
        """Each document's address in the stage's keystream.

        The input that it stands for is the document's terms, which is what noise is added to:
        whatever changes them (another text, another tokeniser) changes every bit of the noise.
        """
        view = terms.astype("<i4", copy=False).data.cast("B")
        inputs = (view[a:b] for a, b in itertools.pairwise((offsets * terms.itemsize).tolist()))
        return self._stream.addresses(documents.source, documents.rows.tolist(), inputs)

    def words(self, addresses: Addresses) -> Callable[[int], npt.NDArray[np.uint64]]:
        """Random words for the decompression of a batch, from a lane of its first document."""
        used = 0

        def draw(count: int) -> npt.NDArray[np.uint64]:
            nonlocal used
            blocks = -(-count // 2)
            raw = self._stream.blocks(addresses[:1], blocks, lane=_SPREAD_LANE, start=used)
            used += blocks
            return raw.view("<u8")[0, :count]

        return draw

    def rows(self, addresses: Addresses, bags: Bags) -> pa.Table:
        """Released bags as a table, under fresh ids of 128 bits, which also order the rows."""
        blocks = self._stream.gather(addresses, np.zeros(len(addresses), np.uint64), lane=_ID_LANE)
        order = blocks.view("<u8")[:, 0]
        return pa.table({"id": _as_hex(blocks), **_as_lists(bags), _ORDER: order})


def _as_hex(blocks: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Each row of 16 bytes as 32 hexadecimal digits."""
    offsets = np.arange(len(blocks) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(
        len(blocks), pa.py_buffer(offsets), pa.py_buffer(binascii.hexlify(blocks.tobytes()))
    )


def _as_lists(bags: Bags) -> dict[str, pa.ListArray]:
    offsets = pa.array(bags.offsets, pa.int32())
    return {
        "terms": pa.ListArray.from_arrays(offsets, bags.entries),
        "counts": pa.ListArray.from_arrays(offsets, bags.counts),
    }


class ReleaseShards(beam.DoFn):
    """A shard in; its data file out, and, tagged, its tally and its identifiers."""

    def __init__(
        self,
        corpus: Corpus,
        schema: pa.Schema,
        parameters: BagOfWordsParameters,
        key: KeySource,
        staging: str,
        shards: int,
        rejects: RejectLog,
    ) -> None:
        self._corpus = corpus
        self._schema = released_schema(corpus, schema)
        self._parameters = parameters
        self._key = key
        self._staging = staging
        self._shards = shards
        self._rejects = rejects
        self._progress = Progress("release")

    def setup(self) -> None:
        self._prepared: tuple[str, Privatizer] | None = None

    @redacted
    def process(self, shard: Shard, codebook: Codebook) -> Iterator[object]:
        key = self._key()
        privatizer = self._privatizer(codebook, key)
        seen = Seen(Identifiers(self._corpus.id, key))
        path = f"data/part-{shard.number:05d}-of-{self._shards:05d}.parquet"
        written = write_tables(
            _shuffled(self._rows(shard, privatizer, seen), privatizer.row_group_rows),
            self._schema,
            path,
            self._staging,
            use_dictionary=list(self._corpus.keep),
        )
        self._rejects.write(seen.rejects, f"shard-{shard.number:05d}")
        yield written
        yield from seen.outputs()

    def _privatizer(self, codebook: Codebook, key: ReleaseKey) -> Privatizer:
        """Its tables are made once for a worker, not once for a shard."""
        if self._prepared is None or self._prepared[0] != codebook.digest:
            self._prepared = codebook.digest, Privatizer(self._parameters, codebook, key)
        return self._prepared[1]

    def _rows(self, shard: Shard, privatizer: Privatizer, seen: Seen) -> Iterator[pa.Table]:
        for split in shard.splits:
            for batch in read(split, self._corpus):
                seen.add(batch)
                tokens = 0
                for documents in batch.parts(privatizer.documents_at_once):
                    rows, read_tokens = privatizer.release(documents)
                    tokens += read_tokens
                    yield self._with_columns(rows, documents.columns)
                self._progress.count(batch, tokens)

    def _with_columns(self, rows: pa.Table, columns: pa.Table) -> pa.Table:
        """The columns of a data file, and the order for the shuffle."""
        named = {name: rows[name] for name in rows.column_names}
        named |= {name: columns[name] for name in self._corpus.keep}
        if self._corpus.id in self._corpus.keep:
            named["id"] = columns[self._corpus.id]
        table = pa.table([named[name] for name in self._schema.names], schema=self._schema)
        return table.append_column(_ORDER, rows[_ORDER])


def released_schema(corpus: Corpus, schema: pa.Schema) -> pa.Schema:
    """The columns of a data file, in order: `id`, the kept ones, `terms`, `counts`.

    An allow-listed id column takes the place of the fresh ids.
    """
    given = corpus.id is not None and corpus.id in corpus.keep
    identifier = schema.field(corpus.id).type if given else pa.string()
    return pa.schema(
        [
            pa.field("id", identifier),
            *(schema.field(name) for name in corpus.keep if name != corpus.id),
            pa.field("terms", pa.list_(pa.int32())),
            pa.field("counts", pa.list_(pa.int32())),
        ]
    )


def _shuffled(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Cut row groups of exactly `size` rows and order each by its fresh ids, drawn by the key.

    Batches end where the texts' sizes say; row groups must not tell where that was.
    """
    window: list[pa.Table] = []
    rows = 0
    for table in tables:
        window.append(table)
        rows += len(table)
        while rows >= size:
            gathered = pa.concat_tables(window)
            yield _in_order(gathered.slice(0, size))
            window, rows = [gathered.slice(size)], rows - size
    if rows:
        yield _in_order(pa.concat_tables(window))


def _in_order(rows: pa.Table) -> pa.Table:
    order = np.argsort(rows[_ORDER].to_numpy(), kind="stable")
    terms, counts = (rows[name].combine_chunks() for name in ("terms", "counts"))
    # Arrow takes three times as long to permute lists.
    bags = permute(
        Bags(
            terms.offsets.to_numpy().astype(np.int64),
            terms.values.to_numpy(),
            counts.values.to_numpy(),
        ),
        order,
    )
    lists = _as_lists(bags)
    others = rows.drop_columns([_ORDER, *lists]).take(pa.array(order))
    for name, column in lists.items():
        others = others.append_column(name, column)
    return others
