"""The documents: links between them, their pictures, and that the reference is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from machine import ROOT

import quietcorpus as qc
from quietcorpus.pipelines import registry


def documents() -> list[Path]:
    """All Markdown files of the repository, but for what is built."""
    folders = (ROOT / name for name in ("docs", "deploy"))
    return [*sorted(ROOT.glob("*.md")), *(p for f in folders for p in sorted(f.rglob("*.md")))]


def anchors(path: Path) -> set[str]:
    """The anchors that a page has for its headings, as GitHub and the site make them."""
    prose = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken(path: Path) -> list[str]:
    """The links of a page to files and headings that there are not."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    found = []
    for link in re.findall(r'\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"', prose):
        target = "".join(link)
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            found.append(target)
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    # Kills: a page that was moved and a heading that was renamed, for those who read the files.
    assert broken(path) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](#one-two) [b](#one) [c](page.md#two) [d](none.md) `[e](e.md)`\n"
    )
    assert broken(page) == ["#one", "page.md#two", "none.md"]


def test_a_picture_is_the_same_in_the_dark() -> None:
    # Kills: a change of one of the two files alone.
    def drawing(name: str) -> str:
        content = (ROOT / "docs" / "pictures" / name).read_text("utf-8")
        return re.sub(r"#[0-9a-f]{6}", "colour", content)

    assert drawing("release.svg") == drawing("release-dark.svg")


def test_the_reference_has_every_kind_and_function() -> None:
    # Kills: a kind or a function that was added and is nowhere described.
    spec = (ROOT / "docs" / "reference" / "spec.md").read_text("utf-8")
    listed = re.findall(r"mechanism:([\w-]+)\+?(\w*)", spec)
    assert [registry.form(kind, [key]) for kind, key in listed] == [*registry.forms()]
    api = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    told = set(re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)", api, re.MULTILINE))
    assert told == set(qc.__all__) - {"ledger"}
