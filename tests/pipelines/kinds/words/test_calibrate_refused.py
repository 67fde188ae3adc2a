"""Calibrations of words that are refused: one line, and nothing is left."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from calibrated_words import contents, make_index, small

from quietcorpus.evaluation.demands import SetSizeAtLeast, UnchangedAtMost
from quietcorpus.indexes.words.word_index import WordIndex
from quietcorpus.pipelines.kinds.words.calibrate import calibrate
from quietcorpus.pipelines.prepare.distances import read_weights
from quietcorpus.transforms.errors import InputError

if TYPE_CHECKING:
    from conftest import Workspace


DOCUMENT = (
    *("--epsilons", "1", "--document-epsilon", "9"),
    *("--document-delta", "1e-6", "--document-words", "20"),
)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"term": ["aa"]}, "columns term and weight"),
        ({"term": ["aa"], "weight": ["many"]}, "columns term and weight"),
        ({"term": ["zz"], "weight": [1.0]}, "no word of the index"),
        ({"term": ["aa"], "weight": [-1.0]}, "no word of the index"),
        ({"term": ["aa"], "weight": [float("nan")]}, "finite"),
        ({"term": ["aa"], "weight": [float("inf")]}, "finite"),
        (None, "columns term and weight"),
    ],
)
def test_weights_that_cannot_be_used(
    columns: dict[str, Any] | None, message: str, index: WordIndex, tmp_path: Path
) -> None:
    path = tmp_path / "weights.parquet"
    if columns is None:
        path.write_bytes(b"PAR1 and no more")
    else:
        pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=message):
        read_weights("weights", str(path), index.vocabulary.terms)


def test_an_output_that_is_in_use_is_left_alone(index: WordIndex, tmp_path: Path) -> None:
    # Kills: overwriting, or measuring for an hour before saying so.
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(InputError, match="not empty"):
        calibrate(index, str(tmp_path / "out"), small("madlib"))
    assert contents(tmp_path / "out") == {"mine": b"kept"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilons": ()}, "at least one"),
        ({"eta": Fraction(2)}, "eta is 2"),
        ({"draws": 0}, "draws"),
        ({"demands": (SetSizeAtLeast(9999, Fraction(1, 2)),)}, "2 to 300"),
        ({"demands": (UnchangedAtMost(Fraction(1, 2), Fraction(2)),)}, "share"),
    ],
)
def test_settings_that_cannot_be_met_leave_nothing(
    changes: dict[str, Any], message: str, index: WordIndex, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        calibrate(index, str(tmp_path / "out"), small("madlib", **changes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "by", "remedy"), [("matplotlib", "local", "calibrate"), ("ray", "ray", "ray")]
)
def test_extras_that_are_not_installed(
    module: str,
    by: Any,
    remedy: str,
    index: WordIndex,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: an ImportError, or one after all the work is done. None is how Python itself notes
    # that a module is not there.
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"extra \[{remedy}\]"):
        calibrate(index, str(tmp_path / "out"), small("madlib"), backend=by)
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_is_not_there(
    index: WordIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a cluster of our own started where another one was named.
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match="RAY_ADDRESS"):
        calibrate(index, str(tmp_path / "out"), small("madlib"), backend="ray")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epsilons", "1,two"), "'1,two' is not a list of numbers"),
        (("--epsilons", "0"), "not between"),
        (("--epsilons", "1", "--words", "none"), "--words"),
        (("--epsilons", "1", "--set-size-at-least", "1"), "--set-size-at-least"),
        (("--epsilons", "1", "--weights", "missing.parquet"), "--weights: missing.parquet"),
        (("--epsilons", "1", "--eta", "1.5"), "eta is 3/2"),
        (("--epsilons", "1", "--document-epsilon", "9"), "--document-epsilon: give document_epsi"),
        (
            (*DOCUMENT, "--document-delta", "0.1"),
            "--document-delta: 0.1 is not allowed; give 1e-12 or ",
        ),
        ((*DOCUMENT, "--document-delta", "1e-13"), "--document-delta: 1e-13 is not allowed; give "),
        ((*DOCUMENT, "--document-words", "10001"), "--document-words: 10,001 is not allowed; at "),
        ((*DOCUMENT, "--document-epsilon", "0"), "--document-epsilon"),
    ],
)
def test_options_that_are_refused(
    workspace: Workspace, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    make_index(tmp_path / "index", 5)
    done = workspace.run(
        "calibrate",
        "words",
        *(str(tmp_path / "index"), "--output", str(tmp_path / "out"), "--mechanism", "madlib"),
        *arguments,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
