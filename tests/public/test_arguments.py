"""Arguments of the API, good and bad."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from small_specs import spec_of

import quietcorpus as qc
from quietcorpus.arguments import exact as exactly

if TYPE_CHECKING:
    from tests.conftest import Workspace


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: qc.release(spec_of(), if_exists="okay"), "if_exists: 'okay' is not known"),
        (lambda: qc.release(spec_of(), workers=0), "workers: 0 is not above zero"),
        (lambda: qc.release(spec_of(relase=1)), "spec: relase: unknown key"),
        (lambda: qc.release(spec_of(), beam_options=["--no"]), "--no: neither an option"),
        (lambda: qc.reconstruct("a", "b", engine="spark"), "engine: 'spark' is not known"),
        (
            lambda: qc.calibrate_words("i", "o", mechanism="brr", epsilons=[0]),
            "0 is not above zero",
        ),
        (
            lambda: qc.compare_indexes("a", "b", "c", epsilons=[1], draws=0),
            "draws: 0 is not above zero",
        ),
        (lambda: qc.calibrate_bags(epsilons=["x"]), "'x' is not a number"),
        (lambda: qc.calibrate_bags(epsilons=[1], bins=[0]), "bins: 0 is not above zero"),
        (lambda: qc.calibrate_bags(epsilons=[1], runs=1), "runs: 1 is below 2"),
        (lambda: qc.reconstruct("a", "b", factors=1.5), "factors: 1.5 is not a whole number"),
        (lambda: qc.audit(spec_of(), draws=99), "draws: 99 is below 100"),
        (
            lambda: qc.build_index("a", "b", provenance="public", bits=32),
            "bits: 32 is not allowed; give a positive multiple of 64",
        ),
        (lambda: qc.audit(spec_of(), confidence=1), "confidence: 1 is not between 0 and 1"),
        (
            lambda: qc.build_candidates("a", "b", provenance="public", projections=1001),
            "projections: 1001 is above 1000",
        ),
        (lambda: qc.ledger.show("nowhere"), "nowhere"),
        (lambda: qc.ledger.init("l", {"caps": []}), "caps: "),
    ],
)
def test_bad_input_is_one_line(here: Workspace, call: Any, message: str) -> None:
    with pytest.raises(qc.InputError) as error:
        call()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    here.assert_nothing_left()


@pytest.mark.parametrize(
    "call",
    [
        lambda progress: qc.release(spec_of(), progress=progress),
        lambda progress: qc.reconstruct("a", "b", progress=progress),
        lambda progress: qc.evaluate("a", against="b", output="c", progress=progress),
        lambda progress: qc.calibrate_words(
            "a", "b", mechanism="brr", epsilons=[1], progress=progress
        ),
        lambda progress: qc.compare_indexes("a", "b", "c", epsilons=[1], progress=progress),
        lambda progress: qc.calibrate_bags(epsilons=[1], progress=progress),
        lambda progress: qc.build_candidates("a", "b", provenance="public", progress=progress),
        lambda progress: qc.build_index("a", "b", provenance="public", progress=progress),
        lambda progress: qc.calibrate_sentences("a", "b", epsilons=[1], progress=progress),
        lambda progress: qc.calibrate_public_texts(
            "a", pools=["b"], epsilons=[1], delta=1e-6, progress=progress
        ),
        lambda progress: qc.audit({}, progress=progress),
        lambda progress: qc.verify("a", progress=progress),
        lambda progress: qc.dry_run({}, progress=progress),
        lambda progress: qc.build_pool("a", "b", provenance="public", progress=progress),
        lambda progress: qc.narrow_pool("a", "b", "c", progress=progress),
    ],
)
def test_progress_is_yes_or_no(here: Workspace, call: Any) -> None:
    # Kills: `progress="no"`, which shows a bar.
    for given in ("no", None, 1):
        with pytest.raises(qc.InputError, match=f"^progress: {given!r} is neither True nor False$"):
            call(given)
    here.assert_nothing_left()


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (0.1, Fraction(1, 10)),
        ("0.05", Fraction(1, 20)),
        (3, Fraction(3)),
        (1e-6, Fraction(1, 10**6)),
    ],
)
def test_numbers_are_what_is_written(given: Any, exact: Fraction) -> None:
    # Kills: the binary fraction that is nearest to 0.1.
    assert exactly(given) == exact
