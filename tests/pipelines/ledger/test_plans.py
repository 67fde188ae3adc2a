"""A schedule of releases alike: what each may spend is what an account takes, and no less."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

pytest.importorskip("dp_accounting")

from quietcorpus.mechanisms.accounting.concentrated import gaussian_epsilon
from quietcorpus.mechanisms.accounting.filters import FILTERS
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import as_terms
from quietcorpus.pipelines.ledger.plans import lines, schedule
from quietcorpus.transforms.errors import InputError

MILLIONTH = Fraction(1, 10**6)


def embeddings(folder: Path) -> dict[str, Any]:
    (folder / "words.txt").write_text("alpha\nbeta\ngamma\n")
    return {
        "kind": "word-embeddings",
        "method": "cooccurrence",
        "user": "author",
        "users": 100_000,
        "epsilon": 1,
        "delta": 1e-6,
        "dimensions": 2,
        "vocabulary": {"public": str(folder / "words.txt")},
    }


def histogram(folder: Path) -> dict[str, Any]:
    (folder / "words.txt").write_text("alpha\nbeta\ngamma\n")
    own = {"kind": "histogram", "precision": 2, "epsilon": 0.1}
    return own | {"vocabulary": {"public": str(folder / "words.txt")}}


def spec(folder: Path, mechanism: dict[str, Any], *caps: dict[str, Any]) -> str:
    """A spec with a ledger of these caps; its path."""
    place = str(folder / "ledger")
    Ledger.init(place, as_terms({"corpus": str(folder / "in"), "caps": list(caps)}))
    content = {
        "release": "weekly",
        "input": {"path": str(folder / "in" / "*.jsonl"), "text": "text"},
        "output": str(folder / "out"),
        "mechanism": mechanism,
        "ledger": place,
    }
    path = folder / "spec.yaml"
    with path.open("w") as stream:
        YAML(typ="safe").dump(content, stream)
    return str(path)


def test_gaussian_releases(tmp_path: Path) -> None:
    # Kills: one composition's figures for another's; a share of epsilon where rho is shared; a
    # room that is one too large.
    cap = {"definition": "user", "epsilon": 4, "delta": 1e-6, "composition": "gaussian"}
    found = schedule(spec(tmp_path, embeddings(tmp_path), cap), 12)
    (account,) = found["accounts"]
    basic, zcdp, gaussian = account["compositions"]
    assert [one["composition"] for one in (basic, zcdp, gaussian)] == ["basic", "zcdp", "gaussian"]
    assert [one["own"] for one in (basic, zcdp, gaussian)] == [False, False, True]
    assert [one["room"] for one in (basic, zcdp, gaussian)] == [1, 11, 12]
    assert Fraction(basic["each"]["epsilon_exact"]) == Fraction(4, 12)
    assert basic["together"]["epsilon"] == pytest.approx(12, rel=1e-3)
    for one in (zcdp, gaussian):
        rule, each = FILTERS[one["composition"]], Fraction(one["each"]["rho"])
        assert rule.epsilon(12 * each, MILLIONTH * 9 / 10) <= 4
        own = gaussian_epsilon(each, MILLIONTH / 12)
        assert Fraction(one["each"]["epsilon_exact"]) == own
        multiplier = Fraction(str(one["each"]["noise_multiplier"]))
        assert 1 / (2 * multiplier**2) <= each  # so that all of them fit
        assert float(multiplier) == pytest.approx((2 * float(each)) ** -0.5, rel=1e-5)
    assert 3.8 < gaussian["together"]["epsilon"] <= 4 < zcdp["together"]["epsilon"]
    table = "\n".join(lines(found))
    assert "gaussian (this ledger)" in table
    assert "noise multiplier" in table


def test_pure_releases(tmp_path: Path) -> None:
    # Kills: pure releases by the Gaussian's rho, an epsilon that an account would refuse; delta
    # of a cap that has none. 400 releases of .1 are the sum's 40, and less under a filter.
    own = {"definition": "limited-precision", "precision": 2, "epsilon": 20}
    found = schedule(spec(tmp_path, histogram(tmp_path), own | {"delta": 1e-6}), 400)
    rows = {one["composition"]: one for one in found["accounts"][0]["compositions"]}
    assert rows["basic"]["room"] == 200
    assert rows["basic"]["together"]["epsilon"] == 40
    assert rows["basic"]["own"]
    assert rows["zcdp"]["together"]["epsilon"] < 13 < rows["gaussian"]["together"]["epsilon"] < 20
    for name, rule in FILTERS.items():
        epsilon = Fraction(rows[name]["each"]["epsilon_exact"])
        assert rule.epsilon(400 * rule.of_epsilon(epsilon), MILLIONTH * 9 / 10) <= 20
        more = rule.of_epsilon(epsilon + Fraction(1, 10**4))
        assert rule.epsilon(400 * more, MILLIONTH * 9 / 10) > 20


def test_an_account_without_a_delta_is_under_no_filter(tmp_path: Path) -> None:
    own = {"definition": "limited-precision", "precision": 2, "epsilon": 20}
    found = schedule(spec(tmp_path, histogram(tmp_path), own), 5)
    assert [one["composition"] for one in found["accounts"][0]["compositions"]] == ["basic"]


def test_what_is_refused(tmp_path: Path) -> None:
    path = spec(tmp_path, histogram(tmp_path), {"definition": "sentence", "epsilon": 3})
    with pytest.raises(InputError, match="has no account for limited-precision"):
        schedule(path, 5)
    with pytest.raises(InputError, match="give 1 or more"):
        schedule(path, 0)
    Path(path).write_text(Path(path).read_text().replace("ledger: ", "# ledger: "))
    with pytest.raises(InputError, match="ledger: missing"):
        schedule(path, 5)
