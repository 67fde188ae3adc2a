"""Noise of bags is drawn anew for every document, term and release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

if TYPE_CHECKING:
    from tests.conftest import Workspace


TERMS = 8
EACH = 40
DOCUMENTS = 2500


def noise(workspace: Workspace, name: str, **changes: Any) -> npt.NDArray[np.int64]:
    """The noise that equal documents got, by the documents' order: (DOCUMENTS, TERMS).

    Every term occurs so often that no noisy count is clipped (probability below 1e-12 in all).
    """
    spec = {
        "input.id": "number",
        "input.keep": ["number"],
        "output": f"released/{name}",
        "mechanism.precision": 1,
        "mechanism.epsilon": 1,
    }
    workspace.release(spec | {key.replace("__", "."): value for key, value in changes.items()})
    rows = sorted(workspace.rows(workspace.output.with_name(name)), key=lambda r: int(r["id"]))
    assert all(row["terms"] == list(range(TERMS)) for row in rows)
    return np.array([row["counts"] for row in rows]) - EACH


def correlation(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> float:
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


# For independent noise a correlation over n pairs is normal with deviation 1 / sqrt(n), but for
# terms of order 1/n; |r| passes 4.9 deviations with probability below 1e-6. Noise that shares its
# uniform bits has r near 1, half of it near 0.5, and 0.035 of shared variance is still found.
BOUND = 4.9 / np.sqrt(DOCUMENTS * TERMS)


@pytest.mark.slow
def test_noise_is_drawn_anew(workspace: Workspace) -> None:
    text = " ".join(["alpha beta delta gamma hello island quiet world"] * EACH)
    workspace.json_lines({"text": text, "number": number} for number in range(DOCUMENTS))
    first = noise(workspace, "first")
    # Equal documents at different positions, and different terms.
    assert abs(correlation(first[:-1], first[1:])) < BOUND
    assert abs(correlation(first[:, :-1], first[:, 1:])) < BOUND
    # Another release id, another epsilon, another precision at the same rate.
    for name, changes in {
        "release": {"release": "other"},
        "epsilon": {"mechanism__epsilon": 1.5},
        "precision": {"mechanism__precision": 2, "mechanism__epsilon": 2},
    }.items():
        assert abs(correlation(first, noise(workspace, name, **changes))) < BOUND
    # The negative control: the same again.
    assert (first == noise(workspace, "again")).all()
    # The right noise: E|Z| = 2 a / (1 - a^2) at a = exp(-1); its relative deviation is below 1 %.
    a = np.exp(-1)
    assert np.abs(first).mean() == pytest.approx(2 * a / (1 - a**2), rel=0.05)
