"""Building a pool of public texts, for releases by votes."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents import lsa
from quietcorpus.indexes.documents.lsa import Lsa
from quietcorpus.indexes.documents.pool import (
    MOST_COMPARED,
    MOST_TEXTS,
    VERSION,
    VERSION_OF_LISTS,
    Pool,
    PoolManifest,
    save,
)
from quietcorpus.indexes.documents.pool_lists import PoolLists
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.sentences.deep_candidate import on_grid
from quietcorpus.transforms.artefacts.encoder import Encoder, EncoderSource
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus

from ..environment.version import quietcorpus_version
from ..storage import places
from ..storage.output import result_folder
from ..storage.places import absolute
from ..terminal.progress import Steps
from . import encoding, pool_lists
from .near_texts import NEAR, SEARCHED, apart, unedited
from .pool_lists import Asked, Trained
from .public_documents import texts

_LOGGER = logging.getLogger("quietcorpus")
_ROWS_AT_ONCE = 4096


def build(
    source: str,
    output: str,
    *,
    text: str,
    provenance: str,
    encoder: str,
    progress: bool,
    tokenizer: Tokenizer = UNICODE_WORDS,
    language: str | None = None,
    search: str | None = None,
    seed: int = 1,
) -> PoolManifest:
    """Build a pool of the documents at `source`; raises InputError for what can be fixed.

    A model encodes where `encoding.session` says. `search` asks for inverted lists, as in
    `ivf:lists=4096`, which pools of more than `MOST_COMPARED` texts have in any case; `seed` is of
    their training.
    """
    source, output = absolute(source), absolute(output)
    asked = None if search is None else pool_lists.parse(search, seed)
    _require_public(provenance)
    with result_folder(output, last=MANIFEST) as folder:
        model = model_of(encoder, tokenizer)
        for doubt in model.doubts_of(language) if model else ():
            _LOGGER.warning("%s", doubt)
        steps = Steps(4, bar=progress)
        with steps.step("reading texts"):
            documents = [one for own in texts(Corpus(source, text)) for one in own.to_pylist()]
            listed, empty = _distinct(documents)
        _require_possible(source, len(listed))
        origin = Origin(
            name=source,
            source={"pattern": places.without_folders(source), "documents": len(documents)},
            left_out={"empty": empty, "equal": len(documents) - empty - len(listed)},
            language=language,
        )
        return make(listed, folder, origin, model, tokenizer, asked, steps, seed=seed)


@dataclass(frozen=True)
class Origin:
    """The origin of a pool's texts.

    Attributes:
        name: what they were read from, for errors.
        source: the same, for the manifest.
        left_out: how many documents were left out, and why.
        language: the texts' own, if it is known.
        guarantee: that under which they were chosen by private data, or None.
    """

    name: str
    source: Mapping[str, Any]
    left_out: Mapping[str, int]
    language: str | None = None
    guarantee: dict[str, Any] | None = None


def make(
    listed: Sequence[str],
    folder: str,
    origin: Origin,
    model: EncoderSource | None,
    tokenizer: Tokenizer,
    asked: Asked | None,
    steps: Steps,
    *,
    seed: int,
) -> PoolManifest:
    """Make a pool of different texts in a folder, by a model or by an encoder that is made of them.

    Near texts are joined: by a model's embeddings, or else by their words, before the encoder is
    made. Raises InputError for lists that they cannot fill, and for too few texts.
    """
    left_out = {**origin.left_out, "near": 0}
    if model is None:
        with steps.step("comparing texts", len(listed), "texts") as display:
            different = unedited(listed, display.show)
        left_out["edited"] = len(listed) - len(different)
        listed = [listed[number] for number in different]
    asked = asked or pool_lists.needed(len(listed), seed)
    if asked is not None:
        asked.check(len(listed))
        steps.total += 2  # known only now, since many texts ask for lists themselves
    opened = _fitted(origin.name, listed, tokenizer) if model is None else model.open()
    vectors = _encoded(opened, model, listed, steps)
    chosen = _chosen(vectors, asked, model is not None, steps)
    manifest = PoolManifest(
        provenance="private" if origin.guarantee else "public",
        guarantee=origin.guarantee,
        source=origin.source,
        encoder=_described(opened, model),
        texts=len(chosen.order),
        left_out=left_out | {"near": len(listed) - len(chosen.order)},
        near=NEAR if model else None,
        builder=f"quietcorpus {quietcorpus_version()}",
        language=origin.language,
        search=chosen.search,
        version=VERSION if chosen.lists is None else VERSION_OF_LISTS,
    )
    kept = pa.array([listed[number] for number in chosen.order], pa.large_string())
    with steps.step("writing"):
        own = opened if isinstance(opened, Lsa) else None
        return save(folder, Pool(manifest, kept, vectors[chosen.order], own, chosen.lists))


def _require_public(provenance: str) -> None:
    """Raise InputError for texts that are not public."""
    if provenance != "public":
        raise InputError(
            "provenance: the texts of a pool are released as they are, chosen by what its encoder "
            "learnt; build it from public documents, with an encoder of public data"
        )


def model_of(encoder: str, tokenizer: Tokenizer) -> EncoderSource | None:
    """Find the model that encodes texts; None for the encoder that is made of them.

    Raises InputError, before the documents are read, for a model that cannot be had.
    """
    if encoder == lsa.NAME:
        return None
    if tokenizer != UNICODE_WORDS:
        raise InputError(f"tokenizer: {encoder} finds its own words; leave it out, or take lsa")
    encoding.require_installed_ray()
    return EncoderSource.resolve("encoder", encoder)


def _require_possible(source: str, texts: int) -> None:
    """Raise InputError if no pool can be made of `texts` different texts."""
    if not texts:
        raise InputError(f"source: {source} has no text; give documents to choose from")
    if texts > MOST_TEXTS:
        raise InputError(
            f"source: {source} has {texts:,} different texts; give at most {MOST_TEXTS:,}, "
            "such as a sample"
        )


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The texts that make the pool, and its lists, if it has any.

    Attributes:
        order: int64 (m,), their numbers, in the pool's order.
        lists: the lists.
        search: the manifest's description of them.
    """

    order: npt.NDArray[np.int64]
    lists: PoolLists | None = None
    search: Mapping[str, Any] | None = None


def _chosen(
    vectors: npt.NDArray[np.float32], asked: Asked | None, joined: bool, steps: Steps
) -> _Chosen:
    """Leave out near texts, if they are to be `joined`, and put the others into lists, if asked.

    In a small pool, its own encoder has all texts on a subject near each other.
    """
    trained = None
    if asked is not None:
        with steps.step("training inverted lists"):
            trained = pool_lists.train(vectors, asked, near=SEARCHED if joined else 1)
    kept = np.arange(len(vectors))
    if joined:
        with steps.step("comparing texts", len(vectors), "texts") as display:
            kept = apart(vectors, _searched(len(vectors), trained), display.show)
    if trained is None:
        return _Chosen(kept)
    with steps.step("measuring recall"):
        arranged = pool_lists.arrange(vectors, trained, kept)
    return _Chosen(arranged.order, arranged.lists, arranged.search)


def _fitted(source: str, listed: Sequence[str], tokenizer: Tokenizer) -> Lsa:
    """Make the encoder that a pool of these texts carries; raises InputError for too few."""
    try:
        return lsa.fit(pa.array(listed, pa.large_string()), tokenizer=tokenizer)
    except lsa.TooFewTexts as error:
        raise InputError(
            f"source: {source} is too small for the encoder {lsa.NAME}: {error}; give more "
            "documents, or another encoder"
        ) from None


def _described(opened: Encoder | Lsa, model: EncoderSource | None) -> Mapping[str, Any]:
    """Return the pool manifest's description of the encoder."""
    if isinstance(opened, Lsa):
        return opened.description
    assert model is not None
    return {
        "name": places.without_folders(model.name),
        "sha256": model.digest,
        "dimensions": opened.dimensions,
    }


class _Bare(dict[int, int]):
    """A table for `str.translate` that puts a space for punctuation, and for control characters.

    Symbols stay, such as emoji and currencies, and so do marks, which are vowels in many scripts.
    """

    def __missing__(self, point: int) -> int:
        punctuates = unicodedata.category(chr(point))[0] in "PC"
        self[point] = ord(" ") if punctuates else point
        return self[point]


_BARE = _Bare()


def _distinct(documents: Sequence[str]) -> tuple[list[str], int]:
    """Return the first of equal texts, in order, and the number of empty ones.

    They are compared without case, spacing, punctuation and compatible forms, so that no encoder
    has a part in it; a text that has nothing else is compared with its punctuation.
    """
    first: dict[str, str] = {}
    empty = 0
    for one in documents:
        plain = " ".join(unicodedata.normalize("NFKC", one).casefold().split())
        if plain:
            first.setdefault(" ".join(plain.translate(_BARE).split()) or plain, one)
        else:
            empty += 1
    return list(first.values()), empty


def _encoded(
    opened: Encoder | Lsa, model: EncoderSource | None, listed: Sequence[str], steps: Steps
) -> npt.NDArray[np.float32]:
    """Return the embedding of every text on the grid, float32 (n, d), of its beginning if long."""
    with (
        encoding.session(model, len(listed)) as ray,
        steps.step("encoding texts", len(listed), "texts") as display,
    ):
        found = encoding.encode(ray, model, opened, listed, display.advance)
    for start in range(0, len(found), _ROWS_AT_ONCE):
        found[start : start + _ROWS_AT_ONCE] = on_grid(found[start : start + _ROWS_AT_ONCE])
    return found


def _searched(texts: int, trained: Trained | None) -> npt.NDArray[np.int64]:
    """Return the lists in which texts near each one are looked for: one of all if they can be.

    Near texts have much the same nearest lists; those that have not stay in the pool.
    """
    if trained is None or texts <= MOST_COMPARED:
        return np.zeros((texts, 1), dtype=np.int64)
    return trained.near
