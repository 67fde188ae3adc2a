"""Narrowing a pool to the lists that a release of votes found: from coarse to fine.

A first release over a large pool tells, at a small part of the budget, which of the pool's lists
the corpus is about. Their texts make a separate pool, with a separate encoder, for a second
release. The choice is post-processing of the first release, and costs nothing more; but the
narrowed pool depends on private data, under the first release's guarantee, and carries it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quietcorpus.indexes.documents.pool import Pool, PoolManifest
from quietcorpus.indexes.folder import MANIFEST
from quietcorpus.indexes.tokens.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.votes.estimates import stand_out
from quietcorpus.transforms.artefacts.folders import PoolSource
from quietcorpus.transforms.errors import InputError

from ...card.costs import MADE_BY, NOISE
from ...card.model import Card
from ...card.parameters import NoiseEntry
from ...card.statements import stated
from ...card.verify import verify
from ...prepare.pool import Origin, make, model_of
from ...storage import files as storage
from ...storage import layout
from ...storage.output import result_folder
from ...storage.places import absolute
from ...terminal.progress import Steps
from .card import PublicTextsMechanism

_SEED = 1


def narrow(release: str, pool: str, output: str, *, encoder: str, progress: bool) -> PoolManifest:
    """Make a pool of the lists' texts that stand out by the votes of a release.

    Raises InputError for a release that is not as its card says, or of another kind, for another
    pool than the release's or one without lists, and for votes of which no list stands out.
    """
    release, output = absolute(release), absolute(output)
    with result_folder(output, last=MANIFEST) as folder:
        model = model_of(encoder, UNICODE_WORDS)
        steps = Steps(5, bar=progress)
        with steps.step("checking the release"):
            card = verify(release)
            mechanism = _votes_of(release, card)
            source = PoolSource.resolve("pool", absolute(pool))
            if source.digest != card.artefacts[0].digest:
                raise InputError(f"pool: {pool} is not the pool that {release} was made from")
            opened = source.open()
        with steps.step("choosing texts"):
            chosen = _chosen(release, mechanism, pool, opened)
        origin = Origin(
            name=release,
            source={"pattern": card.release, "documents": len(opened.texts)},
            left_out={"empty": 0, "equal": 0, "unchosen": len(opened.texts) - len(chosen)},
            language=opened.manifest.language,
            guarantee={
                **stated(card.guarantee),
                MADE_BY: card.release,
                **_noise_of(mechanism),
            },
        )
        listed = opened.texts.take(pa.array(chosen)).to_pylist()
        return make(listed, folder, origin, model, _tokenizer(opened), None, steps, seed=_SEED)


def _noise_of(mechanism: PublicTextsMechanism) -> dict[str, Any]:
    """Return what Gaussian noise cost; nothing for other noise, whose epsilon adds up."""
    cost = mechanism.concentrated
    return {} if cost is None else {NOISE: NoiseEntry.of(cost).model_dump(mode="json")}


def _votes_of(release: str, card: Card) -> PublicTextsMechanism:
    """Return the mechanism of a release of votes for a public pool; raises InputError."""
    mechanism = card.mechanism
    if not isinstance(mechanism, PublicTextsMechanism):
        raise InputError(f"release: {release} is of {mechanism.kind}, and has no votes for a pool")
    if card.budget.inherited:
        raise InputError(
            f"release: {release} was made from a narrowed pool, and a pool of it would have to "
            "state both guarantees; narrow the first pool"
        )
    return mechanism


def _chosen(
    release: str, mechanism: PublicTextsMechanism, pool: str, opened: Pool
) -> npt.NDArray[np.int64]:
    """Return the numbers of the texts whose lists stand out, in order."""
    if opened.lists is None:
        raise InputError(
            f"pool: {pool} has no lists to choose from; take it as it is, or build it with "
            "--search ivf:lists=NUMBER"
        )
    votes = storage.read_table(f"{release}/{layout.VOTES}")["votes"].to_numpy()
    sizes = np.asarray(opened.lists.sizes)
    found = stand_out(votes.reshape(-1, len(opened.texts)), sizes, mechanism.deviation)
    if not found.any():
        raise InputError(
            f"release: no list of {pool} stands out by its noisy votes; give the release a larger "
            "epsilon or `nearest`, or take another pool"
        )
    return np.flatnonzero(np.repeat(found, sizes))


def _tokenizer(opened: Pool) -> Tokenizer:
    """Return the tokeniser of the encoder that a pool carries, or the usual one."""
    return UNICODE_WORDS if opened.encoder is None else opened.encoder.vocabulary.tokenizer
