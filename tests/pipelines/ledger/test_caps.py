"""Caps: the file they are read from, and which releases each of them is charged for."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from machine import MASTER_KEY

from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.mechanisms.words.brr import BinaryRandomizedResponse
from quietcorpus.mechanisms.words.madlib import Madlib
from quietcorpus.pipelines.ledger.caps import (
    Charge,
    Cost,
    MetricCap,
    PrecisionCap,
    SentenceCap,
    Terms,
    UserCap,
    as_terms,
)
from quietcorpus.transforms.errors import InputError

INDEX, OTHER = "0123456789abcdef" * 4, "fedcba9876543210" * 4
OWN = "definition: limited-precision, precision: 10"
METRIC = f'definition: metric, metric: euclidean, index: "{INDEX}"'
GOOD = f"""\
corpus: /corpus/complaints
caps:
  - {{{OWN}, epsilon: 20, delta: 1.0e-6}}
  - {{definition: limited-precision, precision: 2, epsilon: 0.1}}
  - {{{METRIC}, epsilon: 50}}
  - {{{METRIC}, per: document, epsilon: 7}}
  - {{definition: sentence, epsilon: 20/3}}
  - {{definition: user, epsilon: 8, delta: 1.0e-5}}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "caps.yaml"
    path.write_text(text)
    return str(path)


def caps(*lines: str) -> str:
    return "corpus: /corpus\ncaps:\n" + "".join(f"  - {{{line}}}\n" for line in lines)


def test_a_file_of_caps_is_read_exactly(tmp_path: Path) -> None:
    # Kills: decimals as binary fractions, a default that is no limit, the wrong kind of cap.
    found = as_terms(written(tmp_path, GOOD))
    assert found.corpus == "/corpus/complaints"
    assert [type(cap) for cap in found.caps] == [
        PrecisionCap,
        PrecisionCap,
        MetricCap,
        MetricCap,
        SentenceCap,
        UserCap,
    ]
    assert [cap.most for cap in found.caps] == [
        Charge(Fraction(20), Fraction(1, 10**6)),
        Charge(Fraction(1, 10)),
        Charge(Fraction(50)),
        Charge(Fraction(7)),
        Charge(Fraction(20, 3)),
        Charge(Fraction(8), Fraction(1, 10**5)),
    ]
    assert [getattr(cap, "per", None) for cap in found.caps[2:4]] == ["word", "document"]
    assert len({cap.title for cap in found.caps}) == 6


def test_a_relative_corpus_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a corpus that depends on the folder in which a command is run.
    monkeypatch.chdir(tmp_path)
    found = as_terms(written(tmp_path, GOOD.replace("/corpus/complaints", "texts/*.csv")))
    assert found.corpus == str(tmp_path / "texts/*.csv")


NUMBER = r"is not a number; give a positive number"
POSITIVE = r"is not allowed; give a positive number"
CHANCE = r"is not allowed; give a number of 0 or more, below 1"
BAD = {
    "nothing": ("", r"caps\.yaml: [^:]"),
    "a list": ("[1]", r"caps\.yaml: [^:]"),
    "a number": ("5", r"caps\.yaml: [^:]"),
    "no corpus": (f"caps: [{{{OWN}, epsilon: 1}}]", r"corpus: missing; give it a value"),
    "empty corpus": (caps(f"{OWN}, epsilon: 1").replace("/corpus", "''"), r"corpus: ''"),
    "a corpus that is a number": (caps(f"{OWN}, epsilon: 1").replace("/corpus", "5"), r"corpus: "),
    "no caps": ("corpus: /corpus", r"caps: missing; give it a value"),
    "an empty list of caps": ("corpus: /corpus\ncaps: []", r"caps: "),
    "caps that are a mapping": (f"corpus: /c\ncaps: {{{OWN}, epsilon: 1}}", r"caps: "),
    "a cap that is a number": ("corpus: /corpus\ncaps: [5]", r"caps\.0"),
    "no epsilon": (caps(OWN), r"caps\.0\.epsilon: missing; give it a value"),
    "the second has no epsilon": (
        caps(f"{OWN}, epsilon: 1", "definition: sentence"),
        r"caps\.1\.epsilon: missing; give it a value",
    ),
    "epsilon 0": (caps(f"{OWN}, epsilon: 0"), rf"caps\.0\.epsilon: 0 {POSITIVE}"),
    "epsilon 0.0": (caps(f"{OWN}, epsilon: 0.0"), rf"caps\.0\.epsilon: 0\.0 {POSITIVE}"),
    "epsilon 0/7": (caps(f"{OWN}, epsilon: 0/7"), rf"caps\.0\.epsilon: '0/7' {POSITIVE}"),
    "epsilon negative": (caps(f"{OWN}, epsilon: -1"), rf"caps\.0\.epsilon: -1 {POSITIVE}"),
    "epsilon 1/0": (caps(f"{OWN}, epsilon: 1/0"), rf"caps\.0\.epsilon: '1/0' {NUMBER}"),
    "epsilon NaN": (caps(f"{OWN}, epsilon: .nan"), rf"caps\.0\.epsilon: nan {NUMBER}"),
    "epsilon nan, as text": (caps(f"{OWN}, epsilon: nan"), rf"caps\.0\.epsilon: 'nan' {NUMBER}"),
    "epsilon infinite": (caps(f"{OWN}, epsilon: .inf"), rf"caps\.0\.epsilon: inf {NUMBER}"),
    "epsilon minus infinite": (caps(f"{OWN}, epsilon: -.inf"), rf"caps\.0\.epsilon: -inf {NUMBER}"),
    "epsilon infinite, as text": (caps(f"{OWN}, epsilon: inf"), rf"epsilon: 'inf' {NUMBER}"),
    "epsilon text": (caps(f"{OWN}, epsilon: much"), rf"caps\.0\.epsilon: 'much' {NUMBER}"),
    "epsilon empty": (caps(f"{OWN}, epsilon: "), rf"caps\.0\.epsilon: None {NUMBER}"),
    "epsilon true": (caps(f"{OWN}, epsilon: true"), rf"caps\.0\.epsilon: True {NUMBER}"),
    "epsilon a list": (caps(f"{OWN}, epsilon: [1]"), rf"caps\.0\.epsilon: list {NUMBER}"),
    "epsilon without a bound": (caps(f"{OWN}, epsilon: 1{'0' * 400}"), r"caps\.0\.epsilon: "),
    "delta 1": (caps(f"{OWN}, epsilon: 1, delta: 1"), rf"caps\.0\.delta: 1 {CHANCE}"),
    "delta negative": (caps(f"{OWN}, epsilon: 1, delta: -0.1"), rf"delta: -0\.1 {CHANCE}"),
    "delta NaN": (caps(f"{OWN}, epsilon: 1, delta: .nan"), r"caps\.0\.delta: nan is not"),
    "delta text": (caps(f"{OWN}, epsilon: 1, delta: few"), r"caps\.0\.delta: 'few' is not"),
    "N missing": (
        caps("definition: limited-precision, epsilon: 1"),
        r"caps\.0\.precision: missing; give it a value",
    ),
    **{
        f"N {value}": (
            caps(f"definition: limited-precision, precision: {value}, epsilon: 1"),
            r"caps\.0\.precision: .* is not allowed; give a positive whole number",
        )
        for value in ("0", "-3", "2.5", "ten", "true", ".nan")
    },
    "another unit: N of sentences": (
        caps("definition: sentence, epsilon: 1, precision: 10"),
        r"caps\.0\.precision: unknown key",
    ),
    "another unit: an index of a bag": (
        caps(f'{OWN}, epsilon: 1, index: "{INDEX}"'),
        r"caps\.0\.index: unknown key",
    ),
    "an unknown metric": (
        caps(METRIC.replace("euclidean", "cosine") + ", epsilon: 1"),
        r"caps\.0\.metric: ",
    ),
    "no metric": (
        caps(f'definition: metric, index: "{INDEX}", epsilon: 1'),
        r"caps\.0\.metric: missing; give it a value",
    ),
    "no index": (
        caps("definition: metric, metric: hamming, epsilon: 1"),
        r"caps\.0\.index: missing; give it a value",
    ),
    "a short index": (caps(f'{METRIC[:-2]}", epsilon: 1'), r"caps\.0\.index: "),
    "an unknown per": (caps(f"{METRIC}, epsilon: 1, per: line"), r"caps\.0\.per: "),
    "an unknown definition": (
        caps("definition: renyi, epsilon: 1"),
        r"caps\.0\.definition: not one of limited-precision, metric, sentence, document, user",
    ),
    "no definition": (
        caps("epsilon: 1"),
        r"caps\.0\.definition: not one of limited-precision, metric, sentence, document, user",
    ),
    "an unknown key": (caps(f"{OWN}, epsilon: 1, cap: 2"), r"caps\.0\.cap: unknown key"),
    "an unknown key above": (caps(f"{OWN}, epsilon: 1") + "cap: 2\n", r"cap: unknown key"),
    **{
        f"two caps, {name}": (
            caps(f"{one}, epsilon: 1", f"{one}, epsilon: 2"),
            r"caps: an account has two caps; give it one",
        )
        for name, one in {
            "N": OWN,
            "metric": METRIC,
            "sentences": "definition: sentence",
            "users": "definition: user",
        }.items()
    },
    "no YAML": ("caps: [", r"is not valid YAML"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_caps_are_told_in_one_line(tmp_path: Path, name: str) -> None:
    # Kills: each check; a traceback, a second line or a message without its key.
    text, message = BAD[name]
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        as_terms(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert len(said) > len(path) + 10
    assert "\n" not in said
    assert "pydantic" not in said


@pytest.mark.parametrize("secret", [MASTER_KEY, "hidden22"])
@pytest.mark.parametrize("as_file", [True, False])
def test_secrets_in_a_file_of_caps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secret: str, as_file: bool
) -> None:
    # Kills: a ledger whose first record holds the key or a password, or an error that does.
    monkeypatch.delenv("QUIETCORPUS_MASTER_KEY_FILE", raising=False)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", MASTER_KEY)
    for corpus in (f"s3://user:{secret}@bucket/raw", f"https://host/raw?sv=1&sig={secret}"):
        path = written(tmp_path, GOOD.replace("/corpus/complaints", corpus))
        content = {"corpus": corpus, "caps": [{"definition": "sentence", "epsilon": 3}]}
        with pytest.raises(InputError) as caught:
            as_terms(path if as_file else content)
        said = str(caught.value)
        assert said.startswith(f"{path if as_file else 'caps'}: corpus: a secret in a file of caps")
        assert secret not in said


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    # Kills: a traceback for a file that cannot be read.
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such file of caps"):
        as_terms(str(tmp_path / "nowhere.yaml"))
    path = tmp_path / "caps.yaml"
    path.write_bytes(b"caps: \xff")
    with pytest.raises(InputError, match="cannot be read as UTF-8 text"):
        as_terms(str(path))


EPSILON, DELTA = Fraction(3, 7), Fraction(1, 10**6)
BAG = LimitedPrecision(10, EPSILON)
WORDS = MetricPrivacy(Madlib.metric, EPSILON)
CODES = MetricPrivacy(BinaryRandomizedResponse.metric, EPSILON)
SHARED = MetricPrivacy(Madlib.metric, EPSILON, "document")
SENTENCES = SentencePrivacy(EPSILON)
DOCUMENTS = DocumentPrivacy(EPSILON, DELTA)
USERS = UserPrivacy(EPSILON, DELTA)
COSTS = {
    "bag": Cost(BAG),
    "words": Cost(WORDS, INDEX),
    "words, other index": Cost(WORDS, OTHER),
    "codes": Cost(CODES, INDEX),
    "words of a document": Cost(SHARED, INDEX),
    "sentences": Cost(SENTENCES, "sentences of one"),
    "documents": Cost(DOCUMENTS),
    "users": Cost(USERS, "users of the column who"),
}
CAPS: dict[str, dict[str, object]] = {
    "bag": {"definition": "limited-precision", "precision": 10},
    "words": {"definition": "metric", "metric": "euclidean", "index": INDEX},
    "words, other index": {"definition": "metric", "metric": "euclidean", "index": OTHER},
    "codes": {"definition": "metric", "metric": "hamming", "index": INDEX},
    "words of a document": {
        "definition": "metric",
        "metric": "euclidean",
        "index": INDEX,
        "per": "document",
    },
    "sentences": {"definition": "sentence"},
    "documents": {"definition": "document", "delta": "1e-5"},
    "users": {"definition": "user", "delta": "1e-5"},
}


@pytest.mark.parametrize("cap", CAPS)
@pytest.mark.parametrize("cost", COSTS)
def test_a_release_is_charged_to_its_own_account_alone(cap: str, cost: str) -> None:
    # Kills: any cap that takes another definition, metric, index or `per`; a delta that is lost.
    (own,) = Terms.model_validate({"corpus": "/c", "caps": [CAPS[cap] | {"epsilon": 9}]}).caps
    expected = (
        Charge(EPSILON, DELTA if cost in ("users", "documents") else Fraction(0))
        if cap == cost
        else None
    )
    assert own.charge(COSTS[cost]) == expected


@pytest.mark.parametrize(
    ("own", "times", "theorem"),
    [
        (10, 1, ""),
        (1, 10, "group privacy, from N = 1"),
        (3, 4, "group privacy, from N = 3"),
        (5, 2, "group privacy, from N = 5"),
        (11, 1, "group privacy, from N = 11"),
        (1000, 1, "group privacy, from N = 1000"),
    ],
)
def test_another_precision_is_converted(own: int, times: int, theorem: str) -> None:
    # Kills: N and N' swapped, a discount for a larger N, a theorem that is not named.
    cap = PrecisionCap(definition="limited-precision", precision=10, epsilon=Fraction(9))
    found = cap.charge(Cost(LimitedPrecision(own, EPSILON)))
    assert found == Charge(times * EPSILON, Fraction(0), theorem)


def test_a_delta_is_converted_or_refused() -> None:
    # Kills: a delta that is added as it is, or left out, at a larger N.
    cap = PrecisionCap(definition="limited-precision", precision=10, epsilon=Fraction(9))
    found = cap.charge(Cost(LimitedPrecision(5, EPSILON, DELTA)))
    assert found is not None
    assert float(found.delta) == pytest.approx(2e-6 * 2.718281828459045 ** (3 / 7), rel=1e-12)
    with pytest.raises(InputError, match=r"^ledger: the release cannot be counted: \(N = 1\)"):
        cap.charge(Cost(LimitedPrecision(1, Fraction(5), DELTA)))


def test_a_group_of_users_costs_what_the_most_exposed_user_costs() -> None:
    # Kills: the epsilon of a group, or their sum, for that of all users.
    groups = (("gold", Fraction(1, 10)), ("silver", EPSILON))
    cap = UserCap(definition="user", epsilon=Fraction(9), delta=Fraction(1, 10))
    guarantee: Guarantee = UserPrivacy(EPSILON, DELTA, groups)
    assert cap.charge(Cost(guarantee, "users")) == Charge(EPSILON, DELTA)
