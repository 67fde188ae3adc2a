"""The public artefacts that every release of sentence embeddings names."""

from __future__ import annotations

from quietcorpus.indexes.candidates import CandidatesManifest
from quietcorpus.mechanisms.exponential import LARGEST_SET
from quietcorpus.transforms.artefacts.candidates import CandidatesSource
from quietcorpus.transforms.artefacts.encoder import EncoderSource
from quietcorpus.transforms.errors import InputError

from ..card import model as card
from ..schema.sentences import SentencesSpec
from ..storage import places


def public_artefacts(
    spec: SentencesSpec,
) -> tuple[CandidatesSource, EncoderSource, CandidatesManifest]:
    """Return the candidates, the encoder that they were made with, and their manifest.

    Raises InputError for candidates that are private, too many, or made with another encoder.
    """
    source = CandidatesSource.resolve("mechanism.candidates", spec.candidates)
    manifest = source.open().manifest
    if manifest.provenance != "public":
        raise InputError(
            f"mechanism.candidates: {spec.candidates} was made from private data, and nothing "
            "here accounts for that; build candidates from public documents"
        )
    if manifest.candidates > LARGEST_SET:
        raise InputError(
            f"mechanism.candidates: {spec.candidates} has {manifest.candidates}; build at most "
            f"{LARGEST_SET}"
        )
    encoder = EncoderSource.resolve("mechanism.encoder", spec.encoder)
    encoder.check(manifest.encoder)
    return source, encoder, manifest


def on_the_card(candidates: CandidatesSource, encoder: EncoderSource) -> list[card.UsedArtefact]:
    """Return the card's entries for public candidates and their encoder."""
    found = (
        ("candidates", candidates.uri, candidates.digest),
        ("encoder", encoder.name, encoder.digest),
    )
    return [
        card.UsedArtefact(
            name=name, uri=places.without_folders(uri), digest=digest, provenance="public"
        )
        for name, uri, digest in found
    ]
