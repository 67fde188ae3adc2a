"""SVG drawings that take the colours and the fonts of their page."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which remain distinct under any colour vision.
BLUE, VERMILION, GREEN, ORANGE, PURPLE = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7"
# Not black: matplotlib writes no colour for black, so there would be none to replace.
INK, GREY, FAINT, PAPER = "#010101", "#6b6b6b", "#cfcfcf", "#fefefe"

# The page defines these variables, for its light and its dark theme.
_ON_PAGE = {
    BLUE: "var(--blue)",
    VERMILION: "var(--vermilion)",
    GREEN: "var(--green)",
    ORANGE: "var(--orange)",
    PURPLE: "var(--purple)",
    INK: "currentColor",
    GREY: "var(--quiet)",
    FAINT: "var(--rule)",
    PAPER: "var(--page)",
}
SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "quietcorpus",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar sign in a name begins no formula
    "font.size": 9,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}
_HREF = "{http://www.w3.org/1999/xlink}href"


def inline(figure: Figure, name: str, title: str, description: str) -> str:
    """Return a drawing as an `svg` element.

    Args:
        figure: drawn under `SETTINGS`.
        name: the prefix of the ids inside, which are unique on a page if the names are.
        title: the accessible name.
        description: the accessible description, for readers who cannot see the drawing.
    """
    stream = io.StringIO()
    with warnings.catch_warnings():
        # The browser sets the text, in its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(stream, format="svg")
    root = ET.fromstring(stream.getvalue())  # noqa: S314 - matplotlib wrote it a line ago
    _strip(root)
    for element in root.iter():
        _restyle(element)
    _rename(root, name)
    _label(root, name, title, description)
    return ET.tostring(root, encoding="unicode")


def _strip(root: ET.Element) -> None:
    """Remove the size, the licence, the style sheet and the namespace, which the page sets."""
    for attribute in ("width", "height", "version"):
        del root.attrib[attribute]
    for parent in list(root.iter()):
        parent.tag = parent.tag.partition("}")[2]  # in HTML, elements have no namespace prefix
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)


def _restyle(element: ET.Element) -> None:
    declarations = element.get("style", "").split("; ")
    kept = [each for each in declarations if each and not each.startswith("font-family")]
    if kept:
        style = "; ".join(kept)
        element.set("style", re.sub(r"#[0-9a-f]{6}", lambda m: _ON_PAGE.get(m[0], m[0]), style))


def _rename(root: ET.Element, name: str) -> None:
    """Prefix the ids that something refers to with the drawing's name, and drop all others."""
    used = set()
    for element in root.iter():
        if reference := element.attrib.pop(_HREF, None):
            used.add(reference[1:])
            element.set("href", f"#{name}-{reference[1:]}")
        if clip := element.get("clip-path"):
            used.add(clip[len("url(#") : -1])
            element.set("clip-path", clip.replace("#", f"#{name}-"))
    for element in root.iter():
        if (identifier := element.attrib.pop("id", None)) in used:
            element.set("id", f"{name}-{identifier}")


def _label(root: ET.Element, name: str, title: str, description: str) -> None:
    root.set("role", "img")
    root.set("class", "plot")
    root.set("aria-labelledby", f"{name}-title")
    root.set("aria-describedby", f"{name}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(tag, {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(position, element)
