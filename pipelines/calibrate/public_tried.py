"""Pools, numbers of votes and of releases that a calibration of public texts tries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from quietcorpus.indexes.tokenizers import UNICODE_WORDS, Tokenizer
from quietcorpus.mechanisms.ballots import Ballots as AnyVotes
from quietcorpus.mechanisms.pure_votes import votes_at
from quietcorpus.mechanisms.vote_estimates import can_smooth
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.artefacts.pool import CarriedEncoder, PoolSource
from quietcorpus.transforms.errors import InputError

from ..card.together import is_accounted
from .public_rounds import budgets
from .public_texts_report import TriedVotes
from .public_votes import Ballots, VotingDocuments


@dataclass(frozen=True)
class VotesSettings:
    """The settings of a comparison.

    Attributes:
        epsilons: of a document.
        delta: of the release; None for geometric noise, whose delta is zero.
        nearest: the numbers of texts that a document votes for.
        falling: whether nearer texts get more votes, or all the same; one or both.
        documents: the number of documents that will be released; None for as many as vote here.
        runs: the number of runs, each with another split and fresh noise.
        seed: the seed of splits and noise.
        share: of epsilon, for the first of two releases, which are tried too; None for one alone.
    """

    epsilons: Sequence[Fraction]
    delta: Fraction | None
    nearest: Sequence[int]
    falling: Sequence[bool]
    documents: int | None
    runs: int
    seed: int
    share: Fraction | None = None

    def budgets(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Return what either of two releases may spend; raises InputError as `budgets` does."""
        assert self.share is not None
        return budgets(epsilon, self.delta, self.share)

    def votes(self, nearest: int, epsilon: Fraction, falling: bool = False) -> AnyVotes:
        """Return the mechanism; raises InputError for a budget that takes too much noise."""
        try:
            return votes_at(nearest, epsilon, self.delta, falling)
        except ValueError as error:
            raise InputError(f"epsilons: {error}") from None


@dataclass(frozen=True)
class TriedPool:
    """A pool to try, with its encoder found.

    Attributes:
        name: as it was given.
        source: its place.
        texts: the number of its texts.
        can_smooth: whether they are enough for estimates by their embeddings.
        can_narrow: whether it is public, and has lists that a release can choose among.
        narrowed_by: the release that narrowed it; None for a public one.
        encoder: the encoder of documents, with which it was made.
    """

    name: str
    source: PoolSource
    texts: int
    can_smooth: bool
    can_narrow: bool
    narrowed_by: str | None
    encoder: EncoderSource | CarriedEncoder

    @classmethod
    def resolve(cls, name: str, place: str, encoder: str) -> TriedPool:
        """Find a pool; raises InputError for a private one, or another encoder than its own.

        A pool that a release narrowed is no more private than that release. `encoder` is that of
        pools that carry none.
        """
        source = PoolSource.resolve("pool", place)
        manifest = source.open().manifest
        if manifest.guarantee is not None and not is_accounted(manifest.guarantee):
            raise InputError(
                f"pool: {name} was made from private data, and nothing here accounts for that; "
                "build a pool from public texts, or narrow one by a release"
            )
        found: EncoderSource | CarriedEncoder
        if manifest.carries_encoder:
            found = CarriedEncoder.of(source, manifest)
        else:
            found = EncoderSource.resolve("encoder", encoder)
            found.check(manifest.encoder, "pool")
        enough = can_smooth(manifest.texts, manifest.encoder["dimensions"])
        narrowed_by = manifest.source["pattern"] if manifest.guarantee else None
        can_narrow = manifest.guarantee is None and manifest.search is not None
        return cls(name, source, manifest.texts, enough, can_narrow, narrowed_by, found)

    def ballots(
        self, documents: VotingDocuments, nearest: int, on_done: Callable[[int], object]
    ) -> Ballots:
        """Find the votes of all documents."""
        return Ballots(documents, self.source.open(), self.encoder.open(), nearest, on_done)


def settings_of(pools: Sequence[TriedPool], settings: VotesSettings) -> list[TriedVotes]:
    """Return what is tried; raises InputError for more votes than a pool has texts."""
    nearest = settings.nearest
    if settings.share and not any(one.can_narrow for one in pools):
        raise InputError(
            "rounds: no public pool has lists, which a first release chooses among; build one with "
            "--search, or drop the option"
        )
    for one in pools:
        if max(nearest) > one.texts:
            raise InputError(
                f"nearest: {max(nearest)} is more than the {one.texts:,} texts of {one.name}"
            )
    return [
        TriedVotes(one.name, count, falling, rounds, smooth)
        for one in pools
        for rounds in ((1, 2) if settings.share and one.can_narrow else (1,))
        for count in nearest
        for falling in settings.falling
        for smooth in ((False, True) if one.can_smooth or rounds == 2 else (False,))
    ]


def tokenizer_of(pools: Sequence[TriedPool]) -> Tokenizer:
    """Return the tokeniser of the first pool that has one: pools in a comparison share theirs."""
    carried = (one.encoder for one in pools if isinstance(one.encoder, CarriedEncoder))
    return next((encoder.tokenizer for encoder in carried), UNICODE_WORDS)
