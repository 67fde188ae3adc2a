"""The shape of the code: floors, arrows and circles of the import graph, and sizes.

    python benchmarks/structure.py [CHECKOUT ...]

Every import counts, also those inside functions and for type checking. Arrows are imports. Floors
are the modules on the longest path of imports. A circle is a group of modules that import one
another, directly or not.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

FOLDERS = "quietcorpus", "pipelines", "transforms", "evaluation", "indexes", "mechanisms"


def modules_of(root: Path) -> dict[str, ast.Module]:
    """Return the trees of our modules by name, without `quietcorpus.`."""
    trees = {}
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        tree = trees[name.removeprefix("quietcorpus.")] = ast.parse(path.read_text("utf-8"))
        package = ["quietcorpus", *path.relative_to(root).parent.parts]
        package = package[package[1] == "quietcorpus" :]
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom) and node.level
            ):  # from here on it has its whole name
                above = package[: len(package) - node.level + 1]
                node.module, node.level = ".".join([*above, *filter(None, [node.module])]), 0
    return trees


def imported(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Yield the modules of ours that a tree imports."""
    for node in ast.iter_child_nodes(tree):
        found: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        for name in found:
            own = name.removeprefix("quietcorpus.")
            while own and own not in names:
                own = own.rpartition(".")[0]
            if own:
                yield own
        yield from imported(node, names)


def circles_of(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that reach one another."""
    reached: dict[str, set[str]] = {}
    for start, below in graph.items():
        seen, left = set(), [*below]
        while left:
            if (name := left.pop()) not in seen:
                seen.add(name)
                left += graph[name]
        reached[start] = seen
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return [set(group) for group in groups]


def floors_of(graph: dict[str, set[str]]) -> int:
    """Count the modules on the longest path of imports, in a graph without circles."""
    height: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[below] for below in graph.get(name, ())), default=0)
    return max(height.values(), default=0)


def shape(root: Path) -> Iterator[str]:
    """Yield the lines for one checkout."""
    trees = modules_of(root)
    names = set(trees)
    graph = {name: set(imported(tree, names)) - {name} for name, tree in trees.items()}
    circles = circles_of(graph)
    for folder in ("pipelines", "transforms"):
        own = {name: graph[name] for name in graph if name.split(".")[0] == folder}
        inner = {name: {b for b in below if b in own} for name, below in own.items()}
        wings = {
            (above.split(".")[1], below.split(".")[1])
            for above, all_below in inner.items()
            for below in all_below
            if above.count(".") > 1 and below.count(".") > 1
        }
        between = {(one, other) for one, other in wings if one != other}
        stacked = {wing: {low for high, low in between if high == wing} for wing, _ in wings}
        arrows = sum(map(len, inner.values()))
        acyclic = not circles_of(inner)
        yield (
            f"{folder:<11} {len(own):>4} modules, {arrows:>4} arrows, "
            f"{floors_of(inner) if acyclic else '?'} floors; {len(stacked)} wings with arrows, "
            f"{len(between)} between them, {floors_of(stacked)} floors"
        )
    yield f"circles     {len(circles):>4} {' '.join('; '.join(sorted(c)) for c in circles)}"
    yield from (sizes(root, folder) for folder in FOLDERS)


def sizes(root: Path, folder: str) -> str:
    """Return the line for the sizes of a folder's modules and functions."""
    texts = [path.read_text("utf-8") for path in (root / folder).rglob("*.py")]
    modules = [len(text.splitlines()) for text in texts]
    functions = [
        (node.end_lineno or 0) - node.lineno + 1
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return (
        f"{folder:<11} {sum(modules):>6,} lines; a module {median(modules):.0f} (largest "
        f"{max(modules)}), a function {median(functions):.0f} (largest {max(functions)})"
    )


if __name__ == "__main__":
    for given in sys.argv[1:] or ["."]:
        print(given)
        print("\n".join(shape(Path(given))))
