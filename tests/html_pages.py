"""HTML pages, read as text and looked at in a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from browser import Browser

WIDTHS, SCHEMES = (375, 1440), ("light", "dark")
TEXT = 4.5  # WCAG 2.2, 1.4.3


class Page(HTMLParser):
    """The elements of a page, its words, and the rows of its tables by caption."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.words = self._caption = ""
        self._cell: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in {"td", "th", "caption"}:
            self._cell = ""
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self._caption, self._cell = self._cell or "", None
        elif tag in {"td", "th"} and self._cell is not None:
            self.tables[self._caption][-1].append(self._cell.strip())
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.words += data
        if self._cell is not None:
            self._cell += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def assert_looks_well(browser: Browser, page: Path) -> None:
    """Fail for a page that loads or runs something, overflows, is faint, or has no order.

    That what is wrong would be seen is tested in `evaluation/report/test_page.py`.
    """
    backgrounds = set()
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.look(width, scheme)
            browser.open(page)
            assert browser.said() == []
            assert browser.requests() == [page.as_uri()]
            assert browser.run("return document.scripts.length + document.images.length") == 0
            browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
            assert browser.overflow() <= 0
            assert browser.cut() == []
            texts = browser.contrasts()
            assert len(texts) > 20
            assert [found for found in texts if found[1] < TEXT] == []
            assert [found for found in browser.contrasts(drawn=True) if found[1] < 3] == []
            body = "return getComputedStyle(document.body).backgroundColor"
            backgrounds.add((scheme, browser.run(body)))
    assert len(backgrounds) == len({colour for _, colour in backgrounds}) == len(SCHEMES)
    found = "return [...document.querySelectorAll('h1, h2, h3, h4, h5')].map(e => +e.tagName[1])"
    levels = browser.run(found)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    told = browser.accessible()
    named = [one for one in told if one["role"]["value"] in {"table", "region", "article", "image"}]
    assert named
    assert all(one["name"]["value"] for one in named)
