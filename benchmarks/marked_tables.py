"""The part of a page that a benchmark writes, between two marks."""

from __future__ import annotations

from pathlib import Path


def write_tables(path: Path, text: str, name: str = "tables") -> None:
    """Replace the text between the two marks of the file, or append a marked section."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    head, _, rest = old.partition(begin)
    _, _, tail = rest.partition(end)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}{begin}\n{text}\n{end}{tail}")
