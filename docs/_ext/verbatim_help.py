"""A Sphinx extension: the verbatim parts (`\\b`) of a command's help become literal blocks.

sphinx-click makes them lines of text, in which `corpus/*.parquet` would begin an emphasis.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from sphinx.application import Sphinx

_MARK = "| "


def _verbatim(_: Sphinx, _context: Any, lines: list[str]) -> None:
    """Rewrite the lines of a description in place."""
    given = list(lines)
    lines.clear()
    for kept, group in groupby(given, lambda line: line.startswith(_MARK)):
        if kept:
            lines += ["::", "", *(f"   {line.removeprefix(_MARK)}" for line in group), ""]
        else:
            lines += group


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to sphinx-click, which is loaded before."""
    app.connect("sphinx-click-process-description", _verbatim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
