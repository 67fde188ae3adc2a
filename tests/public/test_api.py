"""The Python API: what it returns and raises, and that it leaves the process as it was."""

from __future__ import annotations

import doctest
import logging
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from embedding_releases import embeddings, prepare, ray_folder
from evaluations import BAGS, write_corpus
from process_settings import OF_ENCODERS, changed
from public_candidates import PUBLIC_TEXTS

import quietcorpus as qc
from quietcorpus.api import _exact
from quietcorpus.pipelines.artefacts.candidates import _silent_ray_data

if TYPE_CHECKING:
    from tests.conftest import Workspace

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"


@pytest.fixture
def here(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose folder is the working one, and whose environment is this process's."""
    monkeypatch.chdir(workspace.folder)
    monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", workspace.environment["QUIETCORPUS_MASTER_KEY"])
    return workspace


def spec_of(**changes: Any) -> dict[str, Any]:
    return {
        "release": "test",
        "input": {"path": "input/corpus.jsonl"},
        "output": "released/out",
        "mechanism": {
            "kind": "bag-of-words",
            "precision": 2,
            "epsilon": 4,
            "vocabulary": {"public": "vocabulary.txt"},
            "compression": {"method": "none"},
        },
    } | changes


def test_every_example_of_the_page_is_one_that_runs() -> None:
    # Kills: code on the page that `doctest` passes over.
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) > 10
    for language, block in blocks:
        assert language == "python"
        assert block.startswith(">>> ")
        assert "SKIP" not in block


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")  # of tomotopy's module
def test_the_page_is_true(here: Workspace, lee_texts: list[str]) -> None:
    # Kills: an example that does not run, and an attribute that is called otherwise.
    words = [word for word, _ in Counter(" ".join(lee_texts).lower().split()).most_common(400)]
    words = [word for word in words if word.isascii() and word.isalpha()][:200]
    customers = [f"customer {number}" for number in range(300)]
    letters = pa.table({"text": lee_texts[:300], "customer": customers})
    pq.write_table(letters, here.folder / "letters.parquet")
    pq.write_table(letters.select(["text"]), here.folder / "news.parquet")
    (here.folder / "words.txt").write_text("\n".join(words) + "\n")
    vectors = np.random.default_rng().standard_normal((200, 20))
    lines = (
        f"{word} {' '.join(f'{x:.4f}' for x in row)}"
        for word, row in zip(words, vectors, strict=True)
    )
    (here.folder / "vectors.txt").write_text("\n".join(lines) + "\n")
    level = logging.getLogger("quietcorpus").level
    try:
        failed, tried = doctest.testfile(
            str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
        )
    finally:
        logging.getLogger("quietcorpus").setLevel(level)
    assert tried > 10
    assert failed == 0


def test_a_file_its_content_and_a_checked_spec_are_one(here: Workspace) -> None:
    # Kills: a way in that checks less, or reads numbers otherwise.
    cards = [
        qc.release(given)
        for given in (
            here.spec({"output": "released/file"}),
            spec_of(output="released/content"),
            qc.Spec.model_validate(spec_of(output="released/checked")),
        )
    ]
    assert all(isinstance(card, qc.Card) for card in cards)
    files = [[(file.path, file.sha256) for file in card.files] for card in cards]
    assert files[0] == files[1] == files[2]
    done = here.release({"output": "released/command"})
    assert done.returncode == 0
    made = [
        (one["path"], one["sha256"]) for one in here.card(here.folder / "released/command")["files"]
    ]
    assert made == files[0]


@pytest.mark.slow
def test_what_calls_leave_behind(workspace: Workspace) -> None:
    # Without a key, so that a fresh one is in the environment meanwhile. Kills: logging, signals or
    # a start method set up behind the caller's back; variables, or Beam's options, that stay.
    caps = {"definition": "limited-precision", "precision": 2, "epsilon": 9, "delta": "1e-6"}
    calls = (
        ("release", {"spec": spec_of()}),
        ("release", {"spec": spec_of(release="other")}),
        ("release", {"spec": spec_of(output="released/two"), "workers": 2, "progress": True}),
        ("verify", {"release": "released/two"}),
        ("audit", {"spec": spec_of(), "draws": 1000}),
        ("ledger.init", {"place": "ledger", "caps": {"corpus": "letters", "caps": [caps]}}),
    )
    for imported in ((), ("apache_beam", "quietcorpus.pipelines.release.release")):
        given = calls if not imported else calls[1:2]
        found = changed(
            workspace, *given, imported=imported, environment={"QUIETCORPUS_MASTER_KEY": None}
        )
        assert found["settings"] == {}
        assert len(found["refusals"]) == 1


@pytest.mark.slow
def test_what_an_evaluation_leaves_behind(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: Ray's level of logging and its traces of crashes, in a caller who uses Ray as well.
    pytest.importorskip("tomotopy")
    pytest.importorskip("ray")
    write_corpus(workspace, lee_texts[:100])
    spec = workspace.spec(BAGS)
    against = {"against": "input/corpus.parquet", "spec": str(spec), "draws": 2, "workers": 2}
    with ray_folder() as folder:
        found = changed(
            workspace,
            ("release", {"spec": str(spec)}),
            ("evaluate", {"release": "released/out", "output": "report", **against}),
            imported=("ray", "sklearn"),
            environment={"RAY_TMPDIR": str(folder)},
        )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_calibrations_leave_behind(
    workspace: Workspace, word_index: Path, lee_texts: list[str]
) -> None:
    # Kills: a backend of matplotlib's, or a number of threads, behind the caller's back.
    pytest.importorskip("tomotopy")
    grid = {"epsilons": [6, 8], "words": 20, "draws": 50, "mechanism": "madlib"}
    workspace.json_lines(lee_texts[:100], "public.jsonl")
    bags = {"source": "input/public.jsonl", "vocabulary": "vocabulary.txt", "epsilons": [1]}
    found = changed(
        workspace,
        ("calibrate_words", {"index": str(word_index), "output": "words", **grid}),
        ("calibrate_bags", {**bags, "bins": [4], "runs": 2}),
        imported=("sklearn", "matplotlib"),
    )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_candidates_and_encoders_leave_behind(
    workspace: Workspace, lee_texts: list[str]
) -> None:
    # Kills: a PyTorch that has one thread from then on, other models' bars that are gone, a Ray or
    # a generator of random numbers that is not as it was.
    for module in ("sentence_transformers", "ray", "sklearn"):
        pytest.importorskip(module)
    workspace.parquet({"text": lee_texts[:PUBLIC_TEXTS]}, "public.parquet")
    few = {"candidates": 40, "clusters": 4, "projections": 20}
    few |= {"least_sentences": 7, "most_sentences": 5}
    mechanism = {"kind": "sentence-embeddings", "mechanism": "deep-candidate"}
    with ray_folder() as folder:
        found = changed(
            workspace,
            (
                "build_candidates",
                {"source": "input/public.parquet", "output": "made", "provenance": "public", **few},
            ),
            (
                "calibrate_sentences",
                {"candidates": "made", "source": "input/public.parquet", "epsilons": [10]}
                | {"documents": 20},
            ),
            (
                "release",
                {"spec": spec_of(mechanism=mechanism | {"candidates": "made", "epsilon": 10})},
            ),
            imported=("torch", "sentence_transformers", "sklearn", "ray", OF_ENCODERS),
            environment={"RAY_TMPDIR": str(folder)},
        )
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.slow
def test_what_a_training_leaves_behind(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: a PyTorch that has one thread from then on.
    pytest.importorskip("torch")
    prepare(workspace, lee_texts)
    spec = workspace.spec(embeddings(workspace, "sgd"))
    found = changed(workspace, ("release", {"spec": str(spec)}), imported=("torch",))
    assert found == {"settings": {}, "refusals": []}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray Data itself
def test_what_ray_data_is_left_as() -> None:
    # Kills: a caller's own Ray Data without bars, or without its log.
    context = pytest.importorskip("ray.data").DataContext.get_current()
    logger = logging.getLogger("ray.data")

    def state() -> tuple[bool, int]:
        return context.enable_progress_bars, logger.level

    before = state()
    with _silent_ray_data():
        assert state() == (False, logging.ERROR)
    assert state() == before


def test_progress_is_shown_where_it_is_asked_for(
    here: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    # No terminal here, as there is none in a notebook. Kills: a bar for terminals alone.
    qc.release(spec_of(), progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "starting" in err


def test_nothing_is_printed_and_nothing_ends(
    here: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    # Kills: the command's own lines, a bar that nobody asked for, `sys.exit`.
    qc.release(spec_of())
    with pytest.raises(qc.InputError, match="no such spec file"):
        qc.release("nowhere.yaml")
    assert capfd.readouterr() == ("", "")


def test_publishing_is_told(here: Workspace) -> None:
    # Kills: a call before anything may exist, one for a release that was there.
    told = []
    with pytest.raises(qc.InputError):
        qc.release(
            spec_of(input={"path": "input/none.jsonl"}), on_publishing=lambda: told.append(1)
        )
    assert told == []
    card = qc.release(spec_of(), on_publishing=lambda: told.append(2))
    assert told == [2]
    assert qc.release(spec_of(), if_exists="ok", on_publishing=lambda: told.append(3)) == card
    assert told == [2]


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
        lambda progress: qc.calibrate_bags(epsilons=[1], progress=progress),
        lambda progress: qc.build_candidates("a", "b", provenance="public", progress=progress),
        lambda progress: qc.build_pool("a", "b", provenance="public", progress=progress),
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
    assert _exact(given) == exact


def test_importing_it_loads_little() -> None:
    program = (
        "import sys, quietcorpus as qc; qc.release, qc.ledger.show, qc.InputError; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'apache_beam', 'numpy', 'pyarrow', 'pydantic', 'click', 'numba'}))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def test_all_names_are_there() -> None:
    # Kills: a name in `__all__` that nothing has.
    assert all(getattr(qc, name) is not None for name in qc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'relase'"):
        qc.relase  # noqa: B018
