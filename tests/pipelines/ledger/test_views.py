"""The balances of a ledger: what machines watch is what the ledger grants and refuses by."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import Browser, invalid
from html_pages import Page, assert_looks_well
from ledger_requests import CARD, DECLARED, request
from machine import ROOT

from quietcorpus import ledger as api
from quietcorpus.mechanisms.accounting.filters import Concentrated
from quietcorpus.mechanisms.accounting.guarantees import LimitedPrecision, UserPrivacy
from quietcorpus.pipelines.ledger.book import Ledger
from quietcorpus.pipelines.ledger.caps import Cost, Terms, as_terms
from quietcorpus.pipelines.ledger.records import Partition
from quietcorpus.pipelines.ledger.refusals import Request
from quietcorpus.pipelines.ledger.views import Amount, balances

if TYPE_CHECKING:
    from tests.conftest import Workspace


FIFTH = Fraction(1, 5)


def test_the_balances_of_a_ledger(tmp_path: Path) -> None:
    # Kills: a reservation that is left out, a share of epsilon alone, the charge of another
    # release, an account of another kind that is charged, a float that says that more is left.
    place = str(tmp_path / "ledger")
    own = {"definition": "limited-precision", "precision": 2, "epsilon": 10, "delta": "1/1000"}
    caps = [own, {"definition": "sentence", "epsilon": 3}]
    ledger = Ledger.init(place, as_terms({"corpus": str(tmp_path / "in"), "caps": caps}))
    for name, delta in (("a", Fraction(0)), ("b", Fraction(9, 10_000))):
        cost = Cost(LimitedPrecision(2, FIFTH, delta), "words")
        where = (f"{tmp_path}/in/*", f"{tmp_path}/out/{name}")
        ledger.reserve(Request(name, "0" * 32, *where, None, cost))
    charged, other = balances(ledger, "b")
    assert Fraction(charged.used.epsilon) >= 2 * FIFTH
    assert Fraction(charged.left.epsilon) <= 10 - 2 * FIFTH
    found = (charged.used.epsilon, charged.left.epsilon, charged.share)
    assert found == pytest.approx((0.4, 9.6, 0.9))
    assert charged.charged is not None
    assert charged.charged.delta == pytest.approx(0.0009)
    assert (other.share, other.charged) == (0, None)
    assert other.used == Amount(epsilon=0, delta=0)
    assert balances(ledger, "c")[0].charged is None


# A ledger's page: its figures are the ledger's, it is valid, and it can be read.


HOSTILE = "<script>alert(1)</script> & \"x\" 'y'"
OLD = [ROOT / "tests/fixtures/formats" / name for name in ("ledger-v1", "ledger-v2")]
BAGS, USERS = "limited-precision, N = 2", "user"


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A ledger with two accounts, and releases in every state."""
    caps = [
        {"definition": "limited-precision", "precision": 2, "epsilon": 10},
        {"definition": "user", "epsilon": 4, "delta": 1e-5, "composition": "gaussian"},
    ]
    terms = Terms.model_validate({"corpus": str(tmp_path / "corpus"), "caps": caps})
    ledger = Ledger.init(str(tmp_path / "ledger"), terms)
    own = ledger.uri
    first = ledger.reserve(request(own, "january", 3, output=f"{tmp_path}/{HOSTILE}"))
    ledger.commit(first, "0" * 32, CARD)
    part = Partition("spring", DECLARED)
    ledger.refuse(ledger.reserve(request(own, "february", 2, partition=part)), "1" * 32)
    ledger.reserve(request(own, "march", 1))
    ledger.reserve(request(own, "april", 4))
    ledger.cancel("april", f"it died: {HOSTILE}")
    noise = Concentrated(Fraction(1, 50), Fraction(0))
    cost = Cost(UserPrivacy(Fraction(1), Fraction(1, 10**6)), "author", noise)
    ledger.reserve(request(own, "vectors", cost=cost))
    return own


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    opened = Browser()
    yield opened
    opened.close()


def test_its_figures_are_the_ledgers(place: str) -> None:
    # Kills: a figure that is rounded the other way, an account or a release that is left out.
    page = Page(api.page(place))
    accounts = api.show(place)["accounts"]
    glance, *tables = (rows for rows in page.tables.values())
    assert [row[0] for row in glance[1:]] == [one["account"] for one in accounts]
    assert glance[1][1:] == ["epsilon 10", "epsilon 6", "epsilon 4", "60 %", "3"]
    used = Fraction(accounts[1]["used"]["epsilon_exact"])
    stated = Fraction(glance[2][2].split(",")[0].removeprefix("epsilon "))
    assert used <= stated
    assert stated + Fraction(glance[2][3].split(",")[0].removeprefix("epsilon ")) <= 4
    assert [[row[0], row[5]] for row in tables[0][1:]] == [
        ["january", "committed"],
        ["february", "refused"],
        ["march", "reserved"],
    ]
    assert tables[0][2][6] == "spring (declared)"
    assert tables[1][1][4] == "all documents of one user"
    assert [row[2] for row in tables[2][1:]] == [one["event"] for one in api.history(place)]
    assert "Reserved, and not committed yet" in page.words


def test_names_are_shown_and_never_run(place: str) -> None:
    # Kills: a template without escapes.
    html = api.page(place)
    assert HOSTILE in Page(html).words
    assert "<script" not in html


def test_equal_records_give_equal_pages_that_tell_no_time_of_their_own(place: str) -> None:
    # Kills: a clock on the page.
    assert api.page(place) == api.page(place)


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_ledgers_of_earlier_formats_have_a_page(old: Path) -> None:
    assert Page(api.page(old)).tables


def test_an_account_that_is_used_up_is_red(place: str) -> None:
    # Kills: a threshold that is compared the wrong way round.
    looks = []
    for release, epsilon in (("may", 2), ("june", 2)):
        Ledger.open(place).reserve(request(place, release, epsilon))
        (verdict,) = [one["class"] for one in Page(api.page(place)).of("p") if _is_verdict(one)]
        looks.append(verdict)
    assert looks == ["box warning verdict", "box failed verdict"]


def _is_verdict(attributes: dict[str, str | None]) -> bool:
    return "verdict" in (attributes.get("class") or "")


def test_the_used_part_is_drawn_to_scale(place: str) -> None:
    # Kills: a drawing upside down, or of another account.
    drawn = [one["d"] or "" for one in Page(api.page(place)).of("path")]
    steps = [path.split() for path in drawn if path.startswith("M0 120 H0")]
    assert steps[0][-2] == "V48.0"  # 60 % of 120, from below
    assert len(steps) == 2


@pytest.mark.slow
def test_a_page_is_valid_and_looks_well(browser: Browser, place: str, tmp_path: Path) -> None:
    pages = []
    for number, given in enumerate([place, *OLD]):
        pages.append(tmp_path / f"{number}.html")
        pages[-1].write_text(api.page(given), "utf-8")
        assert_looks_well(browser, pages[-1])
    assert invalid(*pages) == []


@pytest.mark.slow
def test_the_command_prints_the_page_or_one_line(place: str, workspace: Workspace) -> None:
    done = workspace.run("ledger", "show", place, "--html")
    assert (done.returncode, done.stdout) == (0, api.page(place) + "\n")
    done = workspace.run("ledger", "show", place, "--html", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "quietcorpus: error: --html: cannot be combined with --json; leave one of them out"
    )
