"""The report in a real browser; each check has a page beside it that must fail it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import report_content as made
from browser import Browser, invalid

from quietcorpus.evaluation.report import render

CONTENTS = ("bag_of_words", "words", "failed", "odd", "hostile", "bare")
WIDTHS = (375, 1440)
SCHEMES = ("light", "dark")
TEXT, GRAPHICS = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each content."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in CONTENTS:
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(getattr(made, name)()), "utf-8")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all tests."""
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture
def spoilt(pages: dict[str, Path], tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes a page of words in which something stands for something else."""

    def make(old: str, new: str) -> Path:
        html = pages["words"].read_text("utf-8")
        assert old in html
        page = tmp_path / "spoilt.html"
        page.write_text(html.replace(old, new, 1), "utf-8")
        return page

    return make


UNFOLD = "document.querySelectorAll('details').forEach(each => { each.open = true; })"


def severe(browser: Browser) -> list[dict[str, Any]]:
    return [entry for entry in browser.said() if entry["level"] == "SEVERE"]


@pytest.mark.parametrize("name", CONTENTS)
def test_a_page_says_nothing_asks_for_nothing_and_misses_nothing(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.look(1440)
    browser.open(pages[name])
    assert browser.said() == []
    assert browser.requests() == [pages[name].as_uri()]
    assert browser.run("return [...document.images].every(each => each.naturalWidth > 0)")
    assert browser.run("return document.scripts.length + document.images.length") == 0


@pytest.mark.parametrize(
    "planted", ["<script>throw new Error('planted')</script>", "<img src='missing.png' alt=''>"]
)
def test_a_planted_script_or_picture_is_refused_and_heard_of(
    browser: Browser, spoilt: Callable[[str, str], Path], planted: str
) -> None:
    browser.open(spoilt("</main>", planted + "</main>"))
    assert severe(browser)  # the page's own policy lets in neither


def test_a_request_would_be_seen(browser: Browser, spoilt: Callable[[str, str], Path]) -> None:
    page = spoilt("default-src 'none';", "default-src * file:;")
    page.write_text(
        page.read_text("utf-8").replace("</main>", "<iframe src=x.html></iframe></main>")
    )
    browser.open(page)
    assert page.with_name("x.html").as_uri() in browser.requests()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", CONTENTS)
def test_a_page_fits_and_can_be_read(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str, width: int
) -> None:
    browser.look(width, scheme)
    browser.open(pages[name])
    assert browser.overflow() <= 0
    browser.run(UNFOLD)
    assert browser.run("return window.innerWidth") == width
    assert browser.overflow() <= 0
    assert browser.cut() == []
    texts = browser.contrasts()
    assert len(texts) > 30
    assert [found for found in texts if found[1] < TEXT] == []
    # Grid lines alone are faint: the numbers stand at the axis.
    rule = browser.run("return getComputedStyle(document.querySelector('h2')).borderTopColor")
    lines = browser.contrasts(drawn=True)
    assert {line for line, ratio in lines if ratio < GRAPHICS} <= {rule}
    assert lines or not browser.run("return document.querySelectorAll('svg').length")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_verdict_is_seen_first(browser: Browser, pages: dict[str, Path], width: int) -> None:
    # On a telephone, too, without scrolling. Kills: a verdict below what is promised.
    browser.look(width)
    browser.open(pages["words"])
    place = "return document.querySelector('.verdict').getBoundingClientRect().bottom"
    assert 0 < browser.run(place) < 900


def test_the_schemes_differ(browser: Browser, pages: dict[str, Path]) -> None:
    found = {}
    for scheme in SCHEMES:
        browser.look(1440, scheme)
        browser.open(pages["words"])
        found[scheme] = browser.run(
            "return [document.body, document.querySelector('svg text')]"
            ".map(each => getComputedStyle(each)).map(s => [s.backgroundColor, s.color, s.fill])"
        )
    (light, light_text), (dark, dark_text) = found["light"], found["dark"]
    assert light[0] != dark[0]
    assert light_text[2] == light[1] != dark[1] == dark_text[2]


@pytest.mark.parametrize("name", ["bag_of_words", "words", "failed", "odd", "bare"])
def test_paper_is_light_whatever_the_screen_and_nothing_is_cut(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.look(680, "dark", "print")  # A4, less its margins
    browser.open(pages[name])
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    assert browser.overflow() <= 0
    assert browser.cut() == []
    wider = (
        "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > 680).length"
    )
    assert browser.run(wider) == 0
    assert [found for found in browser.contrasts() if found[1] < TEXT] == []
    assert browser.printed().startswith(b"%PDF")


def test_overflow_faint_text_and_cut_labels_would_be_seen(
    browser: Browser, spoilt: Callable[[str, str], Path]
) -> None:
    browser.look(375)
    browser.open(spoilt("</main>", '<div style="width: 400px">wide</div></main>'))
    assert browser.overflow() > 0
    browser.open(spoilt("</main>", '<p style="color: #777; background: #fff0">faint</p></main>'))
    assert [text for text, ratio in browser.contrasts() if ratio < TEXT] == ["faint"]
    browser.open(spoilt('viewBox="0 0 ', 'viewBox="40 0 '))
    browser.run(UNFOLD)
    assert browser.cut()


@pytest.mark.parametrize("name", ["bag_of_words", "words", "odd", "hostile"])
def test_a_screen_reader_is_told_what_every_drawing_and_table_is(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.look(375)
    browser.open(pages[name])
    browser.run(UNFOLD)
    told = browser.accessible()
    titles = browser.run(
        "return [...document.querySelectorAll('svg > title')].map(e => e.textContent)"
    )
    assert len(titles) == browser.run("return document.querySelectorAll('svg').length") > 3
    drawings = [node for node in told if node["role"]["value"] in {"image", "img"}]
    # What was folded comes last in the list of nodes, which is not the order of reading.
    names = sorted(node["name"]["value"] for node in drawings)
    assert names == sorted(" ".join(title.split()) for title in titles)
    assert all("The table holds the same" in node["description"]["value"] for node in drawings)
    for role in ("banner", "main", "navigation", "contentinfo", "complementary"):
        assert [node["role"]["value"] for node in told].count(role) == 1
    named = [n for n in told if n["role"]["value"] in {"table", "region", "article"}]
    assert len(named) > 10
    assert all(node["name"]["value"] for node in named)


@pytest.mark.parametrize("name", CONTENTS)
def test_headings_are_in_order_and_the_page_is_named(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name])
    found = "return [...document.querySelectorAll('h1, h2, h3, h4, h5')].map(e => +e.tagName[1])"
    levels = browser.run(found)
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert browser.run("return document.documentElement.lang") == "en"
    assert browser.driver.title.startswith("Evidence: ")


def test_the_keyboard_skips_to_the_report_and_reaches_wide_tables(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look(375)
    browser.open(pages["failed"])
    first = browser.run("return document.querySelector('a[href], [tabindex]').getAttribute('href')")
    assert first == "#content"
    reached = browser.run(
        "return [...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1"
        " && getComputedStyle(e).overflowX === 'auto').map(e => e.tabIndex)"
    )
    assert len(reached) > 2
    assert set(reached) == {0}


@pytest.mark.slow
def test_the_html_is_valid_and_what_is_not_would_be_seen(
    pages: dict[str, Path], spoilt: Callable[[str, str], Path]
) -> None:
    found = invalid(*pages.values(), spoilt("</main>", "<p id=utility><table><p></main>"))
    assert found
    assert {each.partition(",")[0] for each in found} == {"spoilt.html"}, found
