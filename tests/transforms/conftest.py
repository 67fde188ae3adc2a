"""The key of a release, and encoders: the packaged model is real; a small one of random weights has
its shape, for what needs no sense.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from encoders import KEY, make_small, packaged_folder

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.artefacts.encoder import PACKAGED, Encoder


@pytest.fixture
def key() -> ReleaseKey:
    return ReleaseKey.derive(os.urandom(32), "test", b"")


@pytest.fixture(
    scope="module", params=["float32", pytest.param("bfloat16", marks=pytest.mark.slow)]
)
def packaged(request: pytest.FixtureRequest) -> Encoder:
    """In either precision: a processor without bfloat16 is only slow at it."""
    return Encoder.load(KEY, PACKAGED, packaged_folder(), request.param)


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged model, but for its width and weights."""
    return make_small(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def small(small_folder: Path) -> Encoder:
    """One that a test may change."""
    return Encoder.load(KEY, "small", small_folder, "float32")
