"""The command that looks for public texts in the corpus: its verdict, its report, its words."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hashed_sentences import SIZE, some_candidates
from overlapping_texts import edited, words_in
from public_pools import LETTERS
from small_specs import spec_of

import quietcorpus as qc
from quietcorpus.indexes.documents import candidates, pool
from quietcorpus.indexes.documents.pool import PoolManifest
from quietcorpus.pipelines.provenance import provenance as job
from quietcorpus.pipelines.provenance.provenance import (
    PublicSource,
    named_in,
    of_artefact,
    of_files,
)
from quietcorpus.pipelines.schema.spec import Spec
from quietcorpus.transforms.errors import InputError, StageError

if TYPE_CHECKING:
    from tests.conftest import Workspace


KNOWN = words_in("Latin", 2000, Random(1))
CANARY = "zqxcanary"


def some_texts(count: int, seed: int, words: int = 40) -> list[str]:
    generator = Random(seed)
    return [" ".join([CANARY, *generator.choices(KNOWN, k=words)]) for _ in range(count)]


DOCUMENTS = some_texts(60, 1)
OTHERS = [one.replace(CANARY, "public") for one in some_texts(20, 2)]
COPIES = [" ".join(edited(one.split()[1:], 8, KNOWN, Random(3))) for one in DOCUMENTS[:5]]


@pytest.fixture
def check(workspace: Workspace) -> Callable[..., dict[str, Any]]:
    """Compares the workspace's corpus with public texts, in this process."""

    def made(
        public: list[str | None] | None, /, name: str = "r.json", **given: Any
    ) -> dict[str, Any]:
        place = {"input.path": f"{workspace.input}/*", "output": str(workspace.output)}
        vocabulary = str(workspace.folder / "vocabulary.txt")
        spec = workspace.spec(place | {"mechanism.vocabulary.public": vocabulary})
        files = []
        if public is not None:
            files = [workspace.folder / "public.parquet"]
            pq.write_table(pa.table({"text": public}), files[0])
        report = workspace.folder / name
        return qc.check_provenance(spec, report=report, public=files, **given)

    return made


def test_what_is_found_is_in_the_report(
    workspace: Workspace, check: Callable[..., dict[str, Any]]
) -> None:
    # Kills: a text under another one's number or file; short ones that count; documents that are
    # lost between batches or files; a report that others may read.
    workspace.json_lines([*DOCUMENTS, "ok", b"{"])
    workspace.parquet({"text": DOCUMENTS[:1] * 15}, "b.parquet", row_group_size=4)
    equals = DOCUMENTS[7].upper(), DOCUMENTS[9]
    found = check([OTHERS[0], None, *COPIES, equals[0], "OK", *OTHERS[1:], equals[1]])
    report = workspace.folder / "r.json"
    assert json.loads(report.read_text()) == found
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    public = str(workspace.folder / "public.parquet")
    near = {"file": public, "match": "near", "short": False, "documents": 1}
    assert found["texts"] == [
        near | {"row": 2, "documents": job.MOST_DOCUMENTS},
        *(near | {"row": row} for row in range(3, 7)),
        near | {"row": 7, "match": "equal"},
        near | {"row": 8, "match": "equal", "short": True},
        near | {"row": 28, "match": "equal"},
    ]
    (source,) = found["sources"]
    assert source.pop("share") == pytest.approx(7 / 27)
    assert source == {
        **{"key": "public", "place": public, "texts": 28, "short": 1},
        **{"equal": 2, "near": 5, "short_equal": 1},
    }
    assert (found["passed"], found["found"]) == (False, 7)
    assert (found["documents"], found["unreadable"]) == (76, 1)
    (vocabulary,) = found["not_compared"]
    assert vocabulary["key"] == "vocabulary.public"
    assert CANARY not in report.read_text()


@pytest.mark.parametrize(("accept", "passed"), [(0, False), (4, False), (5, True)])
def test_the_threshold_is_a_number_of_texts(
    workspace: Workspace, check: Callable[..., dict[str, Any]], accept: int, passed: bool
) -> None:
    # Kills: a limit that is off by one; a share in place of a number.
    workspace.json_lines(DOCUMENTS)
    found = check(COPIES + OTHERS, accept=accept)
    assert found["passed"] == passed
    if passed:
        job.refuse(found)
    else:
        with pytest.raises(StageError, match="release nothing that is made of them"):
            job.refuse(found)


def test_corpora_that_share_nothing_pass(
    workspace: Workspace, check: Callable[..., dict[str, Any]]
) -> None:
    workspace.json_lines(DOCUMENTS)
    found = check(OTHERS)
    assert found["passed"]
    assert found["texts"] == []


def test_the_order_of_documents_does_not_matter(
    workspace: Workspace, check: Callable[..., dict[str, Any]]
) -> None:
    # Twelve copies of one document, of which each is in a later batch than the one before. Kills: a
    # count that depends on when a text was settled.
    texts = [own for _ in range(12) for own in (COPIES[0], *DOCUMENTS[10:17])]
    workspace.parquet({"text": texts}, row_group_size=1)
    first = check([DOCUMENTS[0], *OTHERS], "first.json")
    assert check([DOCUMENTS[0], *OTHERS], "second.json") == first
    assert [one["documents"] for one in first["texts"]] == [job.MOST_DOCUMENTS]


def test_the_terminal_tells_a_verdict_and_no_more(workspace: Workspace) -> None:
    # Kills: numbers, texts or rows of what was found on a terminal that a scheduler records.
    workspace.json_lines(DOCUMENTS)
    public = workspace.folder / "public.jsonl"
    public.write_text("".join(json.dumps({"body": one}) + "\n" for one in COPIES + OTHERS))
    command = "provenance", str(workspace.spec()), "--public", str(public), "--text", "body"
    done = workspace.run(*command, "--report", "refused.json")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == (
        "quietcorpus: error: provenance: more public texts than the 0 that are accepted are in the "
        "corpus, as the report says: release nothing that is made of them"
    )
    assert done.stdout.splitlines() == [
        "compared      25 public texts with 60 documents",
        f"not compared  vocabulary.public {workspace.folder}/vocabulary.txt holds no texts; give "
        "those that it was made of with --public",
        "report        refused.json (private: keep it where the corpus is)",
    ]
    accepted = workspace.run(*command, "--report", "accepted.json", "--accept", "5")
    assert accepted.returncode == 0
    assert accepted.stdout.replace("accepted", "refused") == done.stdout
    assert CANARY not in done.stdout + done.stderr
    workspace.assert_nothing_left()


def test_a_corpus_is_read_as_a_release_reads_it(workspace: Workspace, tmp_path: Path) -> None:
    # Kills: a corpus by the other dialect of CSV, which is refused, or has other documents.
    (workspace.input / "corpus.csv").write_text(f'n,text\n0,"\\"{DOCUMENTS[0]}\\""\n')
    place = {"input.path": f"{workspace.input}/corpus.csv", "output": str(workspace.output)}
    place |= {"input.escape": "\\", "input.keep": ["n"]}
    place["mechanism.vocabulary.public"] = str(workspace.folder / "vocabulary.txt")
    public = workspace.parquet({"text": DOCUMENTS[:1]}, "../public.parquet")
    found = qc.check_provenance(workspace.spec(place), report=tmp_path / "r.json", public=[public])
    assert (found["documents"], found["unreadable"]) == (1, 0)


def test_bad_input_is_refused_in_one_line(workspace: Workspace) -> None:
    workspace.json_lines(DOCUMENTS)
    (workspace.folder / "there.json").write_text("{}")
    public = workspace.parquet({"text": OTHERS}, "../public.parquet")
    spec = str(workspace.spec())

    def refusal(*arguments: str) -> str:
        return workspace.error_of(workspace.run("provenance", spec, *arguments))

    named = "--public", str(public)
    assert refusal("--report", "r.json").startswith("--public: nothing that the spec names holds")
    assert refusal("--report", "there.json", *named).endswith("exists already; give another path")
    assert refusal("--report", "no/r.json", *named).endswith("can be written to; make it first")
    assert "is in an object store" in refusal("--report", "gs://b/r.json", *named)
    assert "is in the spec's output" in refusal("--report", "released/out/r.json", *named)
    assert "no file matches" in refusal("--report", "r.json", "--public", "none.parquet")
    said = refusal("--report", "r.json", *named, "--text", "other")
    assert said.startswith("--text: ")
    assert "has no column 'other'" in said
    assert not (workspace.folder / "r.json").exists()
    with pytest.raises(InputError, match="accept: -1 is below 0"):
        qc.check_provenance(spec, report="r.json", accept=-1)
    with pytest.raises(InputError, match="public: expected a list"):
        qc.check_provenance(spec, report="r.json", public=str(public))


def test_a_report_in_a_release_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    workspace.json_lines(DOCUMENTS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "release.json").write_text("{}")
    public = workspace.parquet({"text": OTHERS}, "../public.parquet")
    with pytest.raises(InputError, match="lies in a release"):
        qc.check_provenance(workspace.spec(), report=tmp_path / "other" / "r.json", public=[public])


def test_a_corpus_that_changes_meanwhile_has_no_report(
    workspace: Workspace,
    check: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = workspace.json_lines(DOCUMENTS)
    original = job.read

    def altering(*arguments: Any) -> Any:
        yield from original(*arguments)
        place.write_text(json.dumps({"text": DOCUMENTS[0]}) + "\n")

    monkeypatch.setattr(job, "read", altering)
    with pytest.raises(StageError, match="changed, added or deleted"):
        check(OTHERS)
    assert not (workspace.folder / "r.json").exists()


# The sources that are said to be public: artefacts that hold texts, and those that hold none.


def test_a_pool_s_texts_are_compared(tmp_path: Path) -> None:
    texts = LETTERS.texts.to_pylist()
    manifest = PoolManifest(
        provenance="public",
        guarantee=None,
        source={"pattern": "p", "documents": len(texts)},
        encoder={"name": "letters", "sha256": "0", "dimensions": 4},
        texts=len(texts),
        left_out={"empty": 0, "equal": 0, "near": 0},
        near=None,
        builder="test",
    )
    pool.save(str(tmp_path), replace(LETTERS, manifest=manifest))
    mechanism = {"kind": "public-texts", "pool": str(tmp_path), "epsilon": 1, "delta": 1e-6}
    spec = Spec.model_validate(spec_of(mechanism=mechanism))
    (source,) = named_in(spec)
    assert source == PublicSource("pool", str(tmp_path))
    found = of_artefact(source)
    assert found is not None
    assert found.texts.to_pylist() == texts
    assert found.rows.tolist() == list(range(len(texts)))


@pytest.mark.parametrize("kept", [True, False])
def test_the_texts_of_candidates_are_compared_if_they_are_kept(tmp_path: Path, kept: bool) -> None:
    made = some_candidates()
    assert made.documents is not None
    if kept:
        numbers = pa.array(range(SIZE), pa.int32())
        made = replace(
            made,
            manifest=replace(made.manifest, source={**made.manifest.source, "text": True}),
            documents=made.documents.add_column(0, "candidate", numbers),
        )
    else:
        made = replace(made, documents=None)
    candidates.save(str(tmp_path), made)
    found = of_artefact(PublicSource("candidates", str(tmp_path)))
    assert (found is not None) == kept
    if found is not None:
        assert found.texts.to_pylist() == [f"text {number}" for number in range(SIZE)]


def test_an_artefact_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^pool: .* is not a pool"):
        of_artefact(PublicSource("pool", str(tmp_path)))


def test_files_of_every_format_are_read_with_the_places_of_their_texts(tmp_path: Path) -> None:
    # Kills: rows that are counted without the unreadable ones; a column that is not asked for.
    (tmp_path / "a.jsonl").write_text('{"body": "one"}\n{"body": null}\n{"body": "two"}\n')
    (tmp_path / "b.csv").write_text("body\nthree\n")
    (tmp_path / "c.txt").write_text("four\n")
    found = list(of_files([f"{tmp_path}/*.[jc]s*", f"{tmp_path}/c.txt"], "body"))
    places = [(Path(one.file).name, one.rows.tolist(), one.texts.to_pylist()) for one in found]
    assert places == [
        ("a.jsonl", [0, 2], ["one", "two"]),
        ("b.csv", [0], ["three"]),
        ("c.txt", [0], ["four"]),
    ]
