"""Specs that are loaded, or refused in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from small_specs import changed

from quietcorpus.pipelines.schema.loading import as_spec, load_spec
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


def loaded(workspace: Workspace, changes: dict[str, Any]) -> Spec:
    return load_spec(str(workspace.spec(changes)))


def refusal(spec: Path | str | Mapping[str, Any]) -> str:
    """The one line that a spec is refused with, less its place.

    A spec is a file, or the changes by which the small spec becomes this one.
    """
    given = changed(spec) if isinstance(spec, Mapping) else spec
    with pytest.raises(InputError) as raised:
        as_spec(given)
    message, place = str(raised.value), "spec" if isinstance(spec, Mapping) else spec
    assert "\n" not in message
    assert message.startswith(f"{place}: ")
    assert raised.value.__cause__ is None
    return message.removeprefix(f"{place}: ")
