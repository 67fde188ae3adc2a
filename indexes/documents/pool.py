"""A pool of public texts that documents vote for, as a folder, mapped into memory.

manifest.json     the artefact's description; see `quietcorpus.indexes.folder`
texts.arrow       an Arrow file with the column `text`, large_string, m rows
vectors.npy       float32 (m, d): each text's embedding, scaled to one length and rounded to whole
                  numbers

A pool may carry the encoder that was made of its texts; then its files are there too (see
`indexes.documents.lsa`). It may have inverted lists; then their files are there, and texts stand
list by list (see `quietcorpus.indexes.documents.pool_lists`).

Votes must depend on their own document alone. So vectors are such that their products are exact
(`quietcorpus.indexes.search.largest_products`): the nearest texts of a vector are the same on every
machine and in whatever company it is searched for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .. import folder
from ..folder import MANIFEST, ArtefactError
from ..search.largest_products import are_short_and_whole, largest
from ..tokens.languages import LANGUAGES
from ..tokens.tokenizers import Tokenizer, TokenizerError
from ..tokens.written_language import FrequentWords
from . import lsa, pool_lists
from .lsa import Lsa
from .pool_lists import PoolLists

VERSION = 1
VERSION_OF_LISTS = 2
"""The version of a pool with inverted lists, which earlier software cannot search."""
FORMAT = "quietcorpus-pool"
TEXTS, VECTORS = "texts.arrow", "vectors.npy"
FILES = TEXTS, VECTORS
MOST_TEXTS = 2_000_000
"""The most texts of a pool."""
MOST_COMPARED = 100_000
"""The most texts of a pool without lists: each of them is compared with every document."""
_SAMPLED = 2_000
_NOT_ALWAYS = "language", "search"
_SCHEMA = pa.schema([pa.field("text", pa.large_string())])


@dataclass(frozen=True)
class PoolManifest:
    """The description of a pool.

    Attributes:
        provenance: `public`, or `private` where the choice of the texts, the texts or the
            encoder's training data are private; releases take it of narrowed pools alone.
        guarantee: that of the release by which a narrowed pool was chosen; None for public ones.
        source: the documents, as `pattern` and `documents`, the number of them.
        encoder: `name`, `sha256` and `dimensions`; of one that the pool carries, also the
            `tokenizer`.
        texts: the number of texts, m.
        left_out: how many documents were `empty`, `equal` to an earlier one but for case, spacing,
            punctuation and compatible characters (pools of earlier software: with punctuation),
            or `near` an earlier one by their embeddings; of a pool that carries its encoder, also
            how many were `edited` copies of an earlier one (pools of earlier software: not
            sought); of a narrowed pool, also how many were `unchosen`.
        near: the cosine from which on a document is near another; None if none was sought.
        builder: the software that made the pool.
        files: path, bytes and sha256 of each.
        version: the version of this format.
        language: of the texts, if it is known and no part of the encoder's tokeniser; or None.
        search: of inverted lists, the number of `lists` and of `probes` for a document, the `seed`
            of their training, and `recall`: by numbers of nearest texts, the share of them that is
            found, over `queries` queries. None if a document is compared with all texts.
    """

    provenance: Literal["public", "private"]
    guarantee: dict[str, Any] | None
    source: Mapping[str, Any]
    encoder: Mapping[str, Any]
    texts: int
    left_out: Mapping[str, int]
    near: float | None
    builder: str
    files: tuple[Mapping[str, Any], ...] = ()
    version: int = VERSION
    language: str | None = None
    search: Mapping[str, Any] | None = None

    def to_json(self) -> str:
        """Return the text of `manifest.json`."""
        content = {"format": FORMAT, **asdict(self)}
        for key in _NOT_ALWAYS:
            if content[key] is None:
                del content[key]
        return json.dumps(content, indent=2) + "\n"

    def lines(self) -> list[str]:
        """Describe the pool in lines for people."""
        empty, equal, near = (self.left_out[name] for name in ("empty", "equal", "near"))
        joined = f", {near:,} near one (cosine {self.near:g} or more)" if self.near else ""
        edited = self.left_out.get("edited")
        joined += f", {edited:,} edited copies of one" if edited is not None else ""
        unchosen = self.left_out.get("unchosen")
        joined += f", {unchosen:,} whose lists do not stand out" if unchosen is not None else ""
        return [
            f"texts         {self.texts:,} of {self.source['documents']:,} documents; left out: "
            f"{empty:,} empty, {equal:,} equal to another{joined}",
            f"encoder       {self.encoder['name']}, {self.encoder['dimensions']} dimensions, "
            f"sha256 {self.encoder['sha256'][:12]}",
            *([f"language      {LANGUAGES[self.language]}"] if self.language else []),
            *([f"search        {searching(self.search)}"] if self.search else []),
        ]

    @property
    def carries_encoder(self) -> bool:
        """Return whether the encoder of texts is among the pool's files."""
        return "tokenizer" in self.encoder

    @classmethod
    def read(cls, path: str, digest: str | None = None) -> PoolManifest:
        """Read a manifest; raise ArtefactError if it is missing, unusable or not of `digest`."""
        return cls.from_json(folder.read_manifest(path, "a pool", digest))

    @classmethod
    def from_json(cls, text: str | bytes) -> PoolManifest:
        """Parse a manifest; raise ArtefactError if it is damaged, newer, or without provenance."""
        keys = {field.name for field in fields(cls)} - folder.absent(text, _NOT_ALWAYS)
        versions = VERSION, VERSION_OF_LISTS
        content = folder.parse(text, FORMAT, versions, keys, noun="a pool", source="texts")
        optional = lsa.FILES + pool_lists.FILES
        folder.check_listed(content["files"], FILES + optional, optional=optional)
        folder.check_possible(content, "pool has", _is_possible)
        return cls(**content | {"files": tuple(content["files"])})


def _is_possible(content: Mapping[str, Any]) -> bool:
    named = {file["path"] for file in content["files"]}
    carried = lsa.FILES if "tokenizer" in content["encoder"] else ()
    listed = pool_lists.FILES if "search" in content else ()
    return (
        folder.is_encoded(content, "texts")
        and _has_guarantee(content["guarantee"]) == (content["provenance"] == "private")
        and content["texts"] <= (MOST_TEXTS if listed else MOST_COMPARED)
        and named == {*FILES, *carried, *listed}
        and content.get("language", "en") in LANGUAGES
        and content["version"] == (VERSION_OF_LISTS if listed else VERSION)
        and (not listed or _describes_lists(content["search"], content["texts"]))
    )


def _has_guarantee(guarantee: Mapping[str, Any] | None) -> bool:
    return guarantee is not None and isinstance(guarantee["definition"], str)


def _describes_lists(search: Mapping[str, Any], texts: int) -> bool:
    numbers = [search[name] for name in ("lists", "probes", "seed", "queries")]
    return (
        set(search) == {"lists", "probes", "seed", "queries", "recall"}
        and all(type(number) is int for number in numbers)
        and 1 <= search["probes"] <= search["lists"] <= texts
        and all(
            name.isdecimal() and isinstance(share, float) and 0 <= share <= 1
            for name, share in search["recall"].items()
        )
    )


def searching(search: Mapping[str, Any]) -> str:
    """Describe the search of a manifest in a line for people."""
    found = ", ".join(f"{share:g} of {count}" for count, share in search["recall"].items())
    measured = f"; found of the nearest texts of {search['queries']:,} others: {found}"
    return f"{search['probes']:,} of {search['lists']:,} lists{measured if found else ''}"


@dataclass(frozen=True, eq=False)
class Pool:
    """A pool, mapped from its files, with the encoder if it carries one, and lists if it has any.

    Guarantee:
        The texts that are found for a query are a function of that query and of the pool, exact or
        not: no other query, batch, process, library or processor has a part in it. They are as many
        as are asked for, all different. So a document's votes depend on that document and on
        public data alone, and their norm is the same whether the pool has lists or not.
    """

    manifest: PoolManifest
    texts: pa.LargeStringArray
    vectors: npt.NDArray[np.float32]
    encoder: Lsa | None = None
    lists: PoolLists | None = None

    @property
    def frequent(self) -> FrequentWords | None:
        """Return the most frequent words of the texts, by some of them; None if they are short."""
        some = np.linspace(0, len(self.texts) - 1, min(len(self.texts), _SAMPLED))
        return FrequentWords.of(self.texts.take(pa.array(some.astype(np.int64))))

    def nearest(self, queries: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
        """Find the numbers of the `count` texts of the largest product, int64 (n, count).

        They come in order, and of equal products the lowest number comes first. If the pool has
        lists, they are the nearest of those in the lists that are searched. `count` is at most
        the number of texts, and `queries` are whole numbers like the pool's vectors, float32 (n,
        d), of a squared length of at most `LARGEST_SQUARE`. Raises ValueError for others.
        """
        size = len(self.vectors)
        if not 1 <= count <= size:
            raise ValueError(f"{count} is not between 1 and the pool's {size} texts")
        if not are_short_and_whole(queries):
            raise ValueError("a query is not of whole numbers, or too long for exact products")
        if self.lists is not None:
            return self.lists.nearest(queries, self.vectors, count)
        return largest(queries, self.vectors, count)


def save(path: str, pool: Pool) -> PoolManifest:
    """Write a pool into an empty folder; return the manifest with its files."""
    np.save(f"{path}/{VECTORS}", pool.vectors)
    with pa.OSFile(f"{path}/{TEXTS}", "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(pa.table([pool.texts], schema=_SCHEMA))
    files: tuple[str, ...] = FILES
    if pool.encoder is not None:
        lsa.save(path, pool.encoder)
        files += lsa.FILES
    if pool.lists is not None:
        pool_lists.save(path, pool.lists)
        files += pool_lists.FILES
    complete = replace(pool.manifest, files=folder.described(path, files))
    with open(f"{path}/{MANIFEST}", "w", encoding="utf-8") as stream:
        stream.write(complete.to_json())
    return complete


def open_pool(path: str, digest: str | None = None) -> Pool:
    """Verify a pool and map it into memory; raise ArtefactError if that is impossible."""
    manifest = PoolManifest.read(path, digest)
    folder.verify(path, manifest.files)
    try:
        vectors = np.load(f"{path}/{VECTORS}", mmap_mode="r", allow_pickle=False)
        table = pa.ipc.open_file(pa.memory_map(f"{path}/{TEXTS}")).read_all()
        encoder = None
        if manifest.carries_encoder:
            tokenizer = Tokenizer.of_law(manifest.encoder["tokenizer"])
            encoder = lsa.mapped(path, tokenizer)
        search = manifest.search
        lists = None
        if search is not None:
            lists = pool_lists.mapped(path, search["lists"], search["probes"])
        fits = (
            table.schema == _SCHEMA
            and (len(table), table["text"].null_count) == (manifest.texts, 0)
            and vectors.dtype == np.dtype("<f4")
            and vectors.shape == (manifest.texts, manifest.encoder["dimensions"])
            and vectors.flags.c_contiguous
            and are_short_and_whole(vectors)
            and (lists is None or lists.are_of(vectors))
        )
    except TokenizerError as error:
        raise ArtefactError(f"carries an encoder whose tokeniser cannot be had: {error}") from None
    except Exception:  # NumPy and Arrow raise many kinds of errors for a damaged file
        raise ArtefactError("holds files that cannot be read; build it again") from None
    if not fits:
        raise ArtefactError(
            f"holds files of other sizes or values than its {MANIFEST} says; build it again"
        )
    if encoder is not None and encoder.description != manifest.encoder:
        raise ArtefactError(
            "carries an encoder that reads texts by another tokeniser than this machine's, "
            f"{encoder.vocabulary.tokenizer.description}, or is not the one that its {MANIFEST} "
            "describes; build it again"
        )
    return Pool(manifest, table["text"].combine_chunks(), vectors, encoder, lists)
