"""`index show`, of whatever kind the artefact is."""

from __future__ import annotations

import pytest
from machine import ROOT

from quietcorpus.indexes.documents.candidates import CandidatesManifest
from quietcorpus.pipelines.prepare.showing import show
from quietcorpus.transforms.errors import InputError

FORMATS = ROOT / "tests" / "fixtures" / "formats"


def test_candidates_are_listed_by_their_names() -> None:
    # Kills: a list without those that are last; one that a version without names would not have.
    for version in (1, 2):
        place = str(FORMATS / f"candidates-v{version}")
        manifest = CandidatesManifest.read(place)
        lines = list(show(place, []))
        assert "candidates    8" in lines
        first = next(n for n, line in enumerate(lines) if line.startswith("embeddings.npy"))
        names = lines[first + len(manifest.files) :]
        files = lines[first : first + len(manifest.files)]
        assert [line.split()[0] for line in files] == [file["path"] for file in manifest.files]
        labels = ("sport", "weather") * 4
        listed = [f"{number}\tdoc-{number}\t{label}" for number, label in enumerate(labels)]
        assert names == (["", "candidate\tid\tlabel", *listed] if version == 2 else [])


def test_a_word_index_is_shown_as_one() -> None:
    lines = list(show(str(FORMATS / "word-index-v2"), ["hello"]))
    assert any(line.startswith("hello ") for line in lines)


def test_what_cannot_be_shown() -> None:
    with pytest.raises(InputError, match=r"^words: a set of candidates has no words"):
        list(show(str(FORMATS / "candidates-v1"), ["hello"]))
    with pytest.raises(InputError, match="is not an index: it has no manifest"):
        list(show(str(FORMATS), []))
