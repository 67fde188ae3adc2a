"""The per-document path of a word-level release: what leaves it, and what is said of it."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from privatized_words import (
    ALIKE,
    BOTH,
    BRR,
    LINE,
    MADLIB,
    ON_A_LINE,
    SHARP,
    TINY,
    UNKNOWN,
    documents,
    parameters,
    release,
    texts_of,
)

from quietcorpus.mechanisms.accounting.guarantees import MetricPrivacy
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.mechanisms.words.mechanism import WordMechanism
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import Longest, WordPrivatizer, WordsParameters


@BOTH
@pytest.mark.parametrize("policy", ["drop", "draw"])
def test_longer_documents_are_cut(mechanism: WordMechanism, policy: Any, key: ReleaseKey) -> None:
    # Hardly any noise. Kills: a cut of the batch instead of its documents, words that are counted
    # before unknown ones are dropped, a document of exactly so many that is cut.
    given = parameters(mechanism, SHARP, out_of_vocabulary=policy, longest=Longest(3, "cut"))
    texts = ["beta zebra gamma alpha beta", "", "gamma beta alpha", "alpha " * 50, "beta"]
    found = [text.split() for text in release(given, ON_A_LINE, key, *texts)]
    assert found[1:] == [[], ["gamma", "beta", "alpha"], ["alpha"] * 3, ["beta"]]
    first = found[0]
    assert len(first) == 3
    if policy == "drop":
        assert first == ["beta", "gamma", "alpha"]
    else:
        assert (first[0], first[2]) == ("beta", "gamma")


@BOTH
def test_longer_documents_are_refused_without_a_word_of_them(
    mechanism: WordMechanism, key: ReleaseKey
) -> None:
    given = parameters(mechanism, SHARP, longest=Longest(3, "refuse"))
    plain = parameters(mechanism, SHARP)
    # Unknown words are dropped first, and where none is refused, bytes are those without a limit.
    texts = ["beta zebra gamma alpha", "alpha"]
    assert release(given, ON_A_LINE, key, *texts) == release(plain, ON_A_LINE, key, *texts)
    with pytest.raises(InputError) as refused:
        release(given, ON_A_LINE, key, "alpha", "beta gamma beta gamma")
    assert str(refused.value) == (
        "mechanism.document_epsilon.words: a document has more than 3 words to release; give more, "
        "or `longer: cut`"
    )


@BOTH
@pytest.mark.parametrize("policy", ["drop", "draw"])
def test_only_words_of_the_vocabulary_are_released(
    mechanism: WordMechanism, policy: Any, key: ReleaseKey
) -> None:
    # With hardly any noise, so that whatever may be copied is. Kills: a policy that keeps a word,
    # text between tokens, the case, digits, addresses, punctuation.
    text = (
        "ALPHA, Beta's beta? 4111-1111 jane.doe@beta.org https://alpha.io/beta www.gamma.net "
        "zebra\tgamma! alpha\u0301 b\u00e9ta user_17 alpha2 \U0001f600 \x00 GAMMA\r\n--beta-- \x00"
    )
    given = parameters(mechanism, SHARP, out_of_vocabulary=policy)
    (released,) = release(given, ON_A_LINE, key, text)
    words = released.split(" ")
    assert set(words) <= set(LINE)
    known = ["alpha", "beta", "gamma", "gamma", "beta"]
    if policy == "drop":
        assert words == known
    else:
        # beta's, zebra, the accented two and the words beside.
        assert len(words) > len(known)
        assert words[0] == "alpha"
        assert words[-1] == "beta"


@BOTH
@pytest.mark.parametrize("policy", ["drop", "draw"])
@pytest.mark.parametrize("text", ["", " \n\t", "12 3.5 a@b.c", "\U0001f600 ... !"])
def test_a_text_without_tokens_stays_empty(
    mechanism: WordMechanism, policy: Any, text: str, key: ReleaseKey
) -> None:
    # Alone, and between others. Kills: a batch without words ends the release, texts that move up.
    given = parameters(mechanism, SHARP, out_of_vocabulary=policy)
    privatizer = WordPrivatizer(given, ON_A_LINE, key)
    alone = privatizer.release(documents(text))
    assert texts_of(alone) == [""]
    assert (alone.tokens, alone.known) == (0, 0)
    between = privatizer.release(documents("alpha", text, "gamma beta", text))
    assert texts_of(between) == ["alpha", "", "gamma beta", ""]
    assert (between.tokens, between.known) == (3, 3)
    assert texts_of(privatizer.release(documents())) == []


@BOTH
@pytest.mark.parametrize("count", [1, 3, 1024, 5000])
def test_a_text_of_unknown_words_alone(
    mechanism: WordMechanism, count: int, key: ReleaseKey
) -> None:
    # Kills: a batch, or a thousand words in a row, without a known one ends the release.
    text = " ".join(itertools.islice(itertools.cycle(UNKNOWN), count))
    dropped = WordPrivatizer(parameters(mechanism, SHARP), ON_A_LINE, key).release(documents(text))
    assert texts_of(dropped) == [""]
    assert (dropped.tokens, dropped.known) == (count, 0)
    draw = parameters(mechanism, SHARP, out_of_vocabulary="draw")
    drawn = WordPrivatizer(draw, ON_A_LINE, key).release(documents(text))
    words = texts_of(drawn)[0].split(" ")
    assert len(words) == count
    assert set(words) <= set(LINE)
    assert (drawn.tokens, drawn.known) == (count, 0)


@BOTH
@pytest.mark.parametrize("per", ["word", "document"])
def test_the_guarantee(mechanism: WordMechanism, per: Any) -> None:
    # Kills: the other mechanism's metric, epsilon a word for one a document.
    stated = parameters(mechanism, Fraction(7, 2), per=per).guarantee
    metric = {
        MADLIB: "Euclidean distance of the words' vectors",
        BRR: "Hamming distance of the words' codes",
    }
    assert stated == MetricPrivacy(metric[mechanism], Fraction(7, 2), per)


def test_the_columns(key: ReleaseKey) -> None:
    # Kills: an index or a count of dropped words released beside the text.
    rows = WordPrivatizer(parameters(BRR, TINY), ALIKE, key).release(documents("wa wb")).rows
    assert rows.column_names == ["id", "text", "\0order"]
    (text,) = WordsParameters.fields
    assert rows.schema.field("text").type == text.type
