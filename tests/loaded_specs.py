"""Specs of a workspace: loaded, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quietcorpus.pipelines.schema.loading import load_spec
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace


def loaded(workspace: Workspace, changes: dict[str, Any]) -> Spec:
    return load_spec(str(workspace.spec(changes)))


def refusal(path: Path | str) -> str:
    """The one line that a spec is refused with, less the spec's own path."""
    with pytest.raises(InputError) as raised:
        load_spec(str(path))
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    assert raised.value.__cause__ is None
    return message.removeprefix(f"{path}: ")
