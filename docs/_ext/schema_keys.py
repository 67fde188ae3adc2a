"""Sphinx extensions: lists of the keys of a JSON Schema, so that the pages cannot drift from it.

    ```{schema-keys} spec.schema.json
    ```

An argument after the file names a part: a key (`input`), or the block of a kind
(`mechanism:words`), in the form that has a key (`mechanism:histogram+user`). Keys of blocks within
are listed by their whole path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

_SHORT = 22  # characters: a number with its interval


class SchemaKeys(SphinxDirective):
    """A definition list of a schema's keys: name, values and default, meaning."""

    required_arguments = 1
    optional_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the list, parsed from Markdown."""
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        whole = json.loads(Path(path).read_text("utf-8"))
        part = whole
        if len(self.arguments) > 1:
            part = _part(whole, self.arguments[1])
        lines = [line for entry in _entries(whole, part, "") for line in entry]
        return self.parse_text_to_nodes("\n".join(lines))


def _part(whole: dict[str, Any], name: str) -> dict[str, Any]:
    key, _, form = name.partition(":")
    kind, _, own = form.partition("+")
    found = _blocks(whole, whole["properties"][key])
    if kind:
        found = [block for block in found if block["properties"]["kind"]["const"] == kind]
    return next(block for block in found if not own or own in block["properties"])


def _resolved(whole: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a reference names; the keys beside the reference win."""
    if "$ref" not in schema:
        return schema
    referred = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    return _resolved(whole, referred) | {k: v for k, v in schema.items() if k != "$ref"}


def _choices(whole: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternative schemas of a value."""
    schema = _resolved(whole, schema)
    for word in ("anyOf", "oneOf"):
        if word in schema and "properties" not in schema:
            return [found for one in schema[word] for found in _choices(whole, one)]
    return [schema]


def _blocks(whole: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [choice for choice in _choices(whole, schema) if "properties" in choice]


def _entries(whole: dict[str, Any], block: dict[str, Any], prefix: str) -> Iterator[list[str]]:
    required = block.get("required", [])
    kinds = len(_blocks(whole, block["properties"].get("mechanism", {}))) > 1
    for key, schema in block["properties"].items():
        path = f"{prefix}{key}"
        told = _resolved(whole, schema)
        values = "; or ".join(dict.fromkeys(_values(whole, schema)))
        need = "**required**" if key in required else _default(told)
        meaning = _sentence(told.get("description") or "")
        yield [f"`{path}`", f": {', '.join(filter(None, (values, need)))}", "", f"  {meaning}", ""]
        if key == "mechanism" and kinds:
            continue  # each kind has a list of its own
        lists = [one["items"] for one in _choices(whole, schema) if "items" in one]
        for inner, mark in [(schema, "."), *((item, "[].") for item in lists)]:
            blocks = _blocks(whole, inner)
            for within in blocks:
                if len(blocks) > 1:  # the same key may mean another thing in another block
                    yield [f"`{path}` *as {_words(within['title'])}*", ": one of these blocks", ""]
                yield from _entries(whole, within, f"{path}{mark}")


def _words(title: str) -> str:
    """Return the words of a class's name."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title).lower()


def _values(whole: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the phrases for what a value may be, one for each choice."""
    for one in _choices(whole, schema):
        if one.get("type") == "null":
            continue
        if "enum" in one:
            yield " or ".join(f"`{value}`" for value in one["enum"])
        elif "const" in one:
            yield f"`{json.dumps(one['const']).replace(chr(34), '')}`"
        elif "properties" in one:
            yield "a block"
        elif "items" in one:
            yield f"a list ({' or '.join(_values(whole, one['items'])) or 'of anything'})"
        elif one.get("type") == "object":
            held = one.get("additionalProperties")
            inner = " or ".join(_values(whole, held)) if isinstance(held, dict) else ""
            yield f"a mapping{f' to {inner}' if inner else ''}"
        else:
            yield _scalar(one)


def _scalar(one: dict[str, Any]) -> str:
    names = {"string": "text", "number": "a number", "integer": "a whole number"}
    name = names.get(one.get("type", ""), one.get("type") or "anything")
    limits = [
        f"{word} {_number(one[key])}"
        for key, word in (
            ("minimum", "from"),
            ("exclusiveMinimum", "above"),
            ("maximum", "up to"),
            ("exclusiveMaximum", "below"),
        )
        if key in one
    ]
    return " ".join([name, *limits])


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:g}"


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    if value is None:
        return "optional"
    return f"default `{value if isinstance(value, str) else json.dumps(value)}`"


def _sentence(text: str) -> str:
    """Return a description as one sentence, or as it is where it has several."""
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


class UnbrokenNumbers(SphinxPostTransform):
    """A transform that marks short table cells `unbroken`: phones scroll rather than break them."""

    default_priority = 900

    def run(self, **_: Any) -> None:
        """Mark the short cells."""
        for entry in self.document.findall(nodes.entry):
            if len(entry.astext()) <= _SHORT:
                entry["classes"].append("unbroken")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive and the transform."""
    app.add_directive("schema-keys", SchemaKeys)
    app.add_post_transform(UnbrokenNumbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
