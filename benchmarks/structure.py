"""The shape of the code: rooms, floors, arrows and circles of the import graph, and sizes.

An arrow is an import, a room a folder right below `pipelines/` or `transforms/`; floors are the
rooms on the longest path of imports. `make structure` runs it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path

import grimp

PRODUCT = "quietcorpus", "pipelines", "transforms", "evaluation", "indexes", "mechanisms"


def floors_of(below: dict[str, set[str]]) -> int:
    """Count the rooms on the longest path of imports."""
    height: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        height[name] = 1 + max((height[one] for one in below.get(name, ())), default=0)
    return max(height.values(), default=0)


def rooms_of(graph: grimp.ImportGraph, folder: str) -> str:
    """Return the line for the rooms of a folder and the arrows between them."""
    below: dict[str, set[str]] = {}
    for name in graph.modules:
        if name.split(".")[1:2] == [folder] and name.count(".") > 2:
            room = name.split(".")[2]
            found = [one.split(".") for one in graph.find_modules_directly_imported_by(name)]
            low = {one[2] for one in found if one[1:2] == [folder] and len(one) > 3}
            below.setdefault(room, set()).update(low - {room})
    arrows = sum(map(len, below.values()))
    return (
        f"{folder:<12}{len(below)} rooms, {arrows} arrows between them, {floors_of(below)} floors"
    )


def size(paths: list[Path]) -> str:
    """Return how many lines files have in all, and how many files there are."""
    lines = sum(path.read_text("utf-8").count("\n") for path in paths)
    return f"{lines:,} lines, {len(paths)} files"


def shape() -> Iterator[str]:
    """Yield the lines for this checkout."""
    graph = grimp.build_graph("quietcorpus")
    yield from (rooms_of(graph, folder) for folder in ("pipelines", "transforms"))
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True)
    paths = sorted(path for name in listed.stdout.split() if (path := Path(name)).suffix == ".py")
    folders = {key: list(own) for key, own in groupby(paths, lambda path: path.parts[0])}
    product = [path for folder in PRODUCT for path in folders.get(folder, ())]
    for name, own in ("product", product), *((n, folders[n]) for n in ("benchmarks", "tests")):
        yield f"{name:<12}{size(own)}"
    yield f"docs        {size(list(Path('docs').rglob('*.md')))}"


if __name__ == "__main__":
    print("\n".join(shape()))
