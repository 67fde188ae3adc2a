"""The languages that a model's card names, and the doubt where the texts are in another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quietcorpus.transforms.artefacts.encoder import EncoderSource, languages_of


@pytest.mark.parametrize(
    ("card", "found"),
    [
        ("---\nlanguage: en\ntags:\n- a\n---\n# A model\n---\nlanguage: de\n", {"en"}),
        ("---\nlanguage:\n- en\n- zh\nlicense: mit\n---\n", {"en", "zh"}),
        ("---\nlanguage: multilingual\n---\n", set()),
        ("---\nlanguage: [en, multilingual]\n---\n", set()),
        ("---\nlanguage: 7\n---\n", set()),
        ("---\nlanguage: [[en]]\n---\n", set()),
        ("---\ntags: [a]\n---\n", set()),
        ("---\n{\n---\n", set()),
        ("---\n- language\n---\n", set()),
        ("# language: en\n", set()),
        ("", set()),
    ],
)
def test_a_card(tmp_path: Path, card: str, found: set[str]) -> None:
    # Kills: one language taken for letters; what is not in the head; a traceback on odd cards.
    (tmp_path / "README.md").write_text(card)
    assert languages_of(tmp_path) == found


def test_no_card(tmp_path: Path) -> None:
    assert languages_of(tmp_path) == set()
    (tmp_path / "README.md").write_bytes(b"---\nlanguage: \xff\n---\n")
    assert languages_of(tmp_path) == set()


def test_an_encoder_doubts_other_languages(small_folder: Path, tmp_path: Path) -> None:
    # Kills: a doubt of a language that the card names, or where nobody says which it is; of another
    # standard of a language; none of a neighbour's.
    folder = shutil.copytree(small_folder, tmp_path / "model")
    (folder / "README.md").write_text("---\nlanguage: multilingual\n---\n")
    assert EncoderSource.resolve("encoder", str(folder)).doubts_of("de") == []
    (folder / "README.md").write_text("---\nlanguage: [fr, en]\n---\n")
    source = EncoderSource.resolve("encoder", str(folder))
    assert source.doubts_of("fr") == source.doubts_of(None) == []
    (folder / "README.md").write_text("---\nlanguage: [sr, no]\n---\n")
    of_standards = EncoderSource.resolve("encoder", str(folder))
    assert of_standards.doubts_of("hr") == of_standards.doubts_of("nb") == []
    assert len(of_standards.doubts_of("sl")) == len(of_standards.doubts_of("da")) == 1
    (said,) = source.doubts_of("de")
    assert said.startswith(f"encoder: {folder} is an encoder of English, French, and the texts ")
