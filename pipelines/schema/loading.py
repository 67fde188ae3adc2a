"""The reading of a spec: YAML with changed values, without secrets, and checked in full."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import pydantic
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from quietcorpus.transforms.errors import InputError, shown

from ..environment.credentials import refuse_in_spec
from .errors import one_line, plain
from .spec import Spec


def load_spec(path: str, changes: Mapping[str, str] | None = None) -> Spec:
    """Read and check a spec; raises InputError with one line that names key, value and remedy.

    `changes` maps dotted keys to values, as YAML, which replace the file's.
    """
    content = read_yaml(path, "spec file")
    for key, value in (changes or {}).items():
        _change(content, key, value)
    return _checked(content, path)


def as_spec(given: str | PathLike[str] | Mapping[str, Any] | Spec) -> Spec:
    """Check a spec given as a file, as its content, or as checked already; raises InputError."""
    if isinstance(given, Spec):
        return given
    if isinstance(given, Mapping):
        return _checked(dict(given), "spec")
    return load_spec(fspath(given))


def _checked(content: Any, name: str) -> Spec:
    content = plain(content)
    try:
        refuse_in_spec(content)
        return Spec.model_validate(content)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except pydantic.ValidationError as error:
        raise InputError(f"{name}: {one_line(error, Spec, content)}") from None


def _change(content: Any, key: str, value: str) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        content = content.get(parent) if isinstance(content, dict) else None
    if not isinstance(content, dict):
        raise InputError(f"{key}: the spec has no such block; name a key that it has")
    try:
        content[last] = YAML(typ="safe", pure=True).load(value)
    except (YAMLError, ValueError):
        raise InputError(f"{key}: {shown(value)} is not valid YAML") from None


def read_yaml(path: str, what: str) -> Any:
    """Read the content of a YAML file; raises InputError with one line that states the problem."""
    try:
        with open(path, encoding="utf-8") as stream:
            return YAML(typ="safe", pure=True).load(stream)
    except FileNotFoundError:
        raise InputError(f"{path}: no such {what}") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: cannot be read as UTF-8 text") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problem = " ".join(str(error.problem).split())
        raise InputError(f"{path}: line {line} is not valid YAML: {problem}") from None
    except YAMLError:
        raise InputError(f"{path}: holds characters that YAML does not allow") from None
    except ValueError:  # Python reads some thousands of digits at most
        raise InputError(f"{path}: holds a number of thousands of digits; correct it") from None
