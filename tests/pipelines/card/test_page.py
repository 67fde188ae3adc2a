"""The page of a release: it is the card's, its rows are released ones, and it can be read."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import Browser, invalid
from golden_releases import KINDS
from html_pages import Page, assert_looks_well
from tampering import edit_card, refused

import quietcorpus as qc
from quietcorpus.mechanisms.accounting.guarantees import (
    DocumentPrivacy,
    Guarantee,
    LimitedPrecision,
    MetricPrivacy,
    SentencePrivacy,
    UserPrivacy,
)
from quietcorpus.pipelines.card import page
from quietcorpus.pipelines.card.page import example
from quietcorpus.pipelines.card.readme import blocks
from quietcorpus.pipelines.card.verify import read_card
from quietcorpus.transforms.shards import Written

if TYPE_CHECKING:
    from tests.conftest import Workspace


HOSTILE = "<script>alert(1)</script> & \"x\" 'y'"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    opened = Browser()
    yield opened
    opened.close()


def rows_of(made: Page) -> list[list[str]]:
    """The cells of the released rows on a page."""
    return next((rows for caption, rows in made.tables.items() if "released rows" in caption), [])


@pytest.mark.parametrize("name", KINDS)
def test_a_page_says_what_the_card_says_and_shows_released_rows(golden: Path, name: str) -> None:
    # Kills: a limit or a row that is left out, a row that was not released, a number with all
    # digits of a float.
    release = golden / f"out-{name}"
    card, made = read_card(str(release)), Page((release / "page.html").read_text("utf-8"))
    words = " ".join(made.words.split())
    for line in (card.guarantee.statement, *card.guarantee.not_protected):
        assert " ".join(line.split()) in words
    assert example(card.budget.total.guarantee, card.meaning) in words
    for _, lines in blocks(card.mechanism):
        assert lines in made.words
    for file in ("README.md", "page.html"):
        text = (release / file).read_text("utf-8")
        assert not re.search(r"\d\.\d{7,}", text.split("How it was made")[-1])
    rows = qc.load(release).rows.to_pylist()
    head, *shown = rows_of(made)
    assert [cell.split()[0] for cell in head] == list(rows[0])
    assert shown == [[page.shown(value) for value in row.values()] for row in rows[: page.ROWS]]
    for artefact in card.artefacts:
        assert artefact.digest in words


def test_names_and_rows_are_shown_and_never_run(golden: Path) -> None:
    # Kills: a template without escapes, for what a column or a document may hold.
    card = read_card(str(golden / "out-words"))
    card = card.model_copy(update={"columns": [HOSTILE], "release": HOSTILE})
    html = page.render(card, pa.table({HOSTILE: [HOSTILE]}))
    assert "<script" not in html
    words = Page(html).words
    assert words.count(HOSTILE) > 3


def part(folder: Path, path: str, rows: int) -> Written:
    """A written file; its values tell which it is."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [f"{path} {row}" for row in range(rows)]}), folder / path)
    return Written(path, str(folder / path), "", rows, sealed=False)


def test_rows_are_of_the_smallest_file_whatever_the_order(golden: Path, tmp_path: Path) -> None:
    # Kills: rows that depend on which worker was first; a table beside the main one; an empty file.
    files = [
        *(part(tmp_path, f"data/part-{n}.parquet", rows) for n, rows in enumerate([9, 7, 0, 7])),
        part(tmp_path, "vocabulary.parquet", 1),
    ]
    mechanism = read_card(str(golden / "out-bag-of-words")).mechanism

    def content(file: Written) -> Iterable[bytes]:
        yield Path(file.staged).read_bytes()

    for given in (files, files[::-1]):
        found = page.first_rows(mechanism, given, content)
        assert found is not None
        assert found["id"].to_pylist() == [f"data/part-1.parquet {row}" for row in range(5)]


def test_no_more_of_a_file_is_held_than_the_limit(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a launcher that takes a large shard into its memory.
    monkeypatch.setattr(page, "LARGEST", 100)
    taken = 0

    def content(_: Written) -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1000):
            taken += 64
            yield bytes(64)

    mechanism = read_card(str(golden / "out-words")).mechanism
    file = Written("data/part-0.parquet", "", "", 5)
    assert page.first_rows(mechanism, [file], content) is None
    assert taken == 128


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "—"),
        (0.123456, "0.1235"),
        (list(range(14)), ", ".join(map(str, range(12))) + ", … (14 in all)"),
        ("x" * 300, "x" * 200 + "…"),
        (True, "True"),
    ],
)
def test_a_value_is_shown_short(value: Any, said: str) -> None:
    assert page.shown(value) == said


ODD = {
    "far": (pa.array([10**18], pa.timestamp("s")), None),
    "fine": (pa.array([1], pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
    "day": (pa.array([1], pa.date32()), "1970-01-02"),
    "exact": (pa.array([Decimal("1.50")]), "1.50"),
    "named": (pa.array(["a"]).dictionary_encode(), "a"),
    "nested": (pa.array([{"a": [1]}]), "(not shown)"),
    "bytes": (pa.array([b"\xff"]), "(not shown)"),
    "broken": (pa.array([b"\xff"]).view(pa.string()), "(not shown)"),
    "nothing": (pa.nulls(1), "—"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_a_copied_column_holds_fails_no_release(golden: Path, name: str) -> None:
    # Kills: values that Python lacks, or has only where pandas is installed.
    values, said = ODD[name]
    card = read_card(str(golden / "out-words"))
    ((cell,),) = rows_of(Page(page.render(card, pa.table({name: values}))))[1:]
    assert said in (None, cell)


def test_a_release_without_rows_has_a_page(golden: Path) -> None:
    card = read_card(str(golden / "out-words"))
    assert "No rows are shown" in Page(page.render(card, None)).words


def test_a_release_of_before_has_no_page_and_is_verified(golden: Path, tmp_path: Path) -> None:
    # Kills: a page that is asked of every release, one that nobody compares.
    release = tmp_path / "out"
    shutil.copytree(golden / "out-words", release)
    edit_card(release, lambda card: (card.pop("page_sha256"), card.pop("code_sha256")))
    assert "page.html: not part of the release" in refused(release)
    (release / "page.html").unlink()
    qc.verify(release)


def test_a_page_does_not_depend_on_the_workers(workspace: Workspace) -> None:
    # Kills: rows in the order in which shards were written.
    workspace.json_lines([{"text": f"quiet world {n}"} for n in range(50)])
    pages = []
    for output, *more in (("one",), ("two", "--workers", "2")):
        done = workspace.release({"output": f"released/{output}"}, *more)
        assert done.returncode == 0, done.stderr
        made = Page((workspace.folder / f"released/{output}/page.html").read_text("utf-8"))
        pages.append(rows_of(made))
    assert len(pages[0]) == 1 + page.ROWS
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_pages_are_valid_and_look_well(browser: Browser, golden: Path, tmp_path: Path) -> None:
    pages = [golden / f"out-{name}" / "page.html" for name in KINDS]
    card = read_card(str(golden / "out-words"))
    hostile = card.model_copy(update={"columns": [HOSTILE], "release": HOSTILE * 3})
    pages.append(tmp_path / "page.html")
    pages[-1].write_text(page.render(hostile, pa.table({HOSTILE: [HOSTILE * 9]})), "utf-8")
    for made in pages:
        assert_looks_well(browser, made)
    assert invalid(*pages) == []


# The example of a guarantee: which change it speaks of, and numbers that never understate.


EPSILON, DELTA = Fraction(7, 3), Fraction(1, 3 * 10**6)
BOTH = (DocumentPrivacy(EPSILON, DELTA), UserPrivacy(EPSILON, DELTA))


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        (1, "one of its words tells something of you. Had you left it out, whatever"),
        (2, "one of its words tells something of you. Had you written another in its place, "),
        (3, "one of its words tells something of you. Had you written another in its place, "),
        (11, "5 of its words tell something of you. Had you written others in their place, "),
    ],
)
def test_no_more_words_are_replaced_than_the_precision_hides(precision: int, said: str) -> None:
    # A replaced word is one removed and one added. Kills: N replaced words.
    assert said in example(LimitedPrecision(precision, EPSILON))


@pytest.mark.parametrize(
    "total", [LimitedPrecision(2, EPSILON), SentencePrivacy(EPSILON), *BOTH], ids=repr
)
def test_the_factor_is_not_understated(total: Guarantee) -> None:
    # Kills: a factor that is rounded down.
    stated = re.search(r"at most ([0-9.]+) times as large or as small", example(total))
    assert stated
    assert math.exp(EPSILON) <= float(stated[1]) <= math.exp(EPSILON) * 1.01 + 1


@pytest.mark.parametrize("total", [LimitedPrecision(2, EPSILON, DELTA), *BOTH], ids=repr)
def test_a_delta_is_told_and_not_understated(total: Guarantee) -> None:
    # Kills: an example that keeps a delta to itself.
    stated = re.search(r", but for a chance of ([0-9.e-]+)\.$", example(total))
    assert stated
    assert Fraction(stated[1]) >= DELTA


def test_no_delta_is_made_up() -> None:
    assert "chance of" not in example(LimitedPrecision(2, EPSILON)).replace("a chance that", "")


def test_words_and_documents_of_a_metric_are_told_apart() -> None:
    # Kills: the whole document's distance for a mean, or a mean for a word's.
    word = example(MetricPrivacy("distance", EPSILON))
    assert "where d is how far apart the two are." in word
    assert "exp(2.33334 * d) times" in word
    document = example(MetricPrivacy("distance", EPSILON, "document"))
    assert "all of its words were others" in document
    assert "where d is how far apart they are on average." in document
