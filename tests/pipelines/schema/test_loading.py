"""The text of a spec: files that are none, and numbers as they were written."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from loaded_specs import refusal

from quietcorpus.pipelines.schema.loading import load_spec

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000, "[0x" + "f" * 5000 + "]"])
@pytest.mark.parametrize("key", ["release", "input", "mechanism.epsilon", "mechanism.precision"])
def test_numbers_that_cannot_even_be_written(workspace: Workspace, key: str, number: str) -> None:
    # Kills: a number that Python refuses to write, and an error of Python's for it.
    path = workspace.spec({key: "NUMBER"})
    path.write_text(path.read_text().replace("NUMBER", number))
    assert ("list" if number.startswith("[") else "digits") in refusal(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("release: a\nrelease: b\n", "line 2 is not valid YAML: found duplicate key"),
        ("mechanism:\n  epsilon: 1\n  epsilon: 2\n", "line 3 is not valid YAML: found duplicate"),
        ("release: [a\n", "line 2 is not valid YAML: "),
        ("release: a\n\tb: c\n", "line 2 is not valid YAML: "),
        ("a: 1\n---\nb: 2\n", "line 2 is not valid YAML: "),
        ("release: !!python/object:os.system a\n", "line 1 is not valid YAML: "),
        ("a: \x07\n", "holds characters that YAML does not allow"),
        ("", "the spec: expected a mapping, got None; give the keys release, input"),
        (
            "just words\n",
            "the spec: expected a mapping, got 'just words'; give the keys release, input",
        ),
        ("- a\n- b\n", "the spec: expected a mapping, got list; give the keys release, input"),
    ],
)
def test_files_that_are_no_specs(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    assert refusal(path).startswith(message)


def test_specs_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.yaml") == "no such spec file"
    assert refusal(tmp_path) == "cannot be read as UTF-8 text"
    (tmp_path / "latin.yaml").write_bytes(b"release: \xff")
    assert refusal(tmp_path / "latin.yaml") == "cannot be read as UTF-8 text"


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-8", Fraction(1, 10**8)),
        ("1.5e-3", Fraction(3, 2000)),
        ("5", Fraction(5)),
        ("0.30000000000000004", Fraction(30000000000000004, 10**17)),
    ],
)
def test_numbers_are_the_decimals_that_were_written(
    workspace: Workspace, written: str, exact: Fraction
) -> None:
    # Kills: Fraction(0.1), which is not 1/10; numbers in scientific notation read as strings.
    path = workspace.spec({"mechanism.vocabulary": {"private": {"epsilon": 1, "delta": "DELTA"}}})
    path.write_text(path.read_text().replace("'DELTA'", written).replace("DELTA", written))
    if exact >= 1:
        path.write_text(path.read_text().replace(f"delta: {written}", "delta: 0.1"))
        path.write_text(path.read_text().replace("epsilon: 1", f"epsilon: {written}"))
        assert load_spec(str(path)).mechanism.vocabulary.private.epsilon == exact
    else:
        assert load_spec(str(path)).mechanism.vocabulary.private.delta == exact
