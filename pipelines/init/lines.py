"""Lines of YAML for a person to read: values with their reasons."""

from __future__ import annotations

import json
import re
import textwrap

_COMMENT, _WIDTH = 31, 92
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # of YAML, not strings


def quoted(value: str) -> str:
    """Return a name or a path as YAML, in quotes unless it is plain."""
    plain = re.fullmatch(r"[A-Za-z_/][\w/.-]*", value, re.ASCII) and value.lower() not in _WORDS
    if plain:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def line(key: str, value: str, why: str) -> str:
    """Return a line of YAML with its reason, in a column of reasons."""
    indent = len(key) - len(key.lstrip())
    return f"{key + ': ' + value:<{_COMMENT + indent}} # {why}"


def note(text: str) -> list[str]:
    """Return a text as comments."""
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
