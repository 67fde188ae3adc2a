"""The languages of a sentence encoder, as the model's own card tells them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from quietcorpus.indexes.tokens.languages import LANGUAGES

_CARD = "README.md"
_FENCE = "---\n"


def languages_of(folder: Path) -> frozenset[str]:
    """Return the languages, by their codes, that a model's card names; none if it names none.

    The card begins with YAML between two lines `---`, as the Hugging Face hub has it: `language` is
    a code or a list of codes. A name outside the codes of `LANGUAGES`, such as `multilingual`, is
    not a language.
    """
    try:
        content = (folder / _CARD).read_text(encoding="utf-8")
        head = content.removeprefix(_FENCE).split(f"\n{_FENCE}")[0] if _FENCE in content else ""
        named = YAML(typ="safe", pure=True).load(head)["language"]
        codes = frozenset([named] if isinstance(named, str) else named)
    except (OSError, ValueError, TypeError, KeyError, YAMLError):
        return frozenset()
    return codes if codes <= LANGUAGES.keys() else frozenset()


def in_words(codes: Iterable[str]) -> str:
    """Return languages by their names, in alphabetical order."""
    return ", ".join(sorted(LANGUAGES[code] for code in codes))
