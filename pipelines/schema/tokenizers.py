"""The `tokenizer` key of a spec: a rule's name, or a block with its name and a language."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from quietcorpus.indexes.tokens.languages import LANGUAGES
from quietcorpus.indexes.tokens.tokenizers import ICU_WORDS_NAME, NAMES, Tokenizer, TokenizerError
from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.transforms.errors import InputError, shown

from .values import Strict, of_key, of_value

Named = Literal["unicode-words-v2", "icu-words-v2", "unicode-words-v1", "icu-words-v1"]
KEY = "mechanism.tokenizer"


def _language(value: str) -> str:
    if not isinstance(value, str) or value not in LANGUAGES:
        raise of_value(f"is not allowed; give one of {', '.join(LANGUAGES)}")
    return value


class IcuWords(Strict):
    """The rule `icu-words-v2`, or its first version."""

    name: Annotated[Literal["icu-words-v2", "icu-words-v1"], Field(description="the rule")]
    language: Annotated[
        Annotated[str, BeforeValidator(_language)] | None,
        Field(
            description="the language of the texts, as a code of two letters: it decides letters, "
            "elisions and the dotted i",
            json_schema_extra={"enum": [*LANGUAGES, None]},
        ),
    ] = None


def _canonical(value: Any) -> Any:
    """Return a rule without settings as its name alone, if it has none, and else as a block."""
    listed = ", ".join(NAMES)
    name = value.get("name", ICU_WORDS_NAME) if isinstance(value, dict) else value
    if isinstance(value, IcuWords):
        return value
    if not isinstance(name, str) or name not in NAMES:
        problem = f"is not allowed: give one of {listed}"
        raise of_key("name", f"{shown(name)} {problem}") if value is not name else of_value(problem)
    if Tokenizer(name).takes_language:
        return value if isinstance(value, dict) else {"name": name}
    if isinstance(value, dict) and len(value) > 1:
        raise of_key(
            "", f"{name} is the same for all languages; give its name alone, or {ICU_WORDS_NAME}"
        )
    return name


def _is_block(value: object) -> str:
    return "<block>" if isinstance(value, dict | IcuWords) else "<name>"


TokenizerSpec = Annotated[
    Annotated[Named, Tag("<name>")] | Annotated[IcuWords, Tag("<block>")],
    Discriminator(_is_block),
    BeforeValidator(_canonical),
    Field(description="how text is split into words"),
]


def tokenizer_of(given: Named | IcuWords) -> Tokenizer:
    """Return the rule with the software of this process; raises InputError if that is missing."""
    try:
        if isinstance(given, IcuWords):
            return Tokenizer.here(given.name, given.language)
        return Tokenizer.here(given)
    except TokenizerError as error:
        raise InputError(f"{KEY}: {error}") from None


def tokenizer_of_index(given: Named | IcuWords | None, index: WordIndex) -> Tokenizer:
    """Return the rule of a spec, or the index's if the spec names none.

    Raises InputError for an index whose words are of another rule.
    """
    own = index.tokenizer
    try:
        asked = own.installed() if given is None else tokenizer_of(given)
    except TokenizerError as error:
        raise InputError(f"mechanism.index: {error}") from None
    if asked.title != own.title:
        raise InputError(
            f"{KEY}: {asked.title} is not the tokenizer of the index, {own.title}; name that one, "
            "or build an index with `quietcorpus index build --tokenizer`"
        )
    return asked
