"""Words in a pipeline of a user's own: what is released, and what is refused.

Beam finds no types in this module's rows if their annotations are strings.
"""

import json
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.window import FixedWindows
from composed import SEEN, SURROGATE, Doc, doc, run
from machine import MASTER_KEY, OTHER_KEY

from quietcorpus.beam import PrivatizeWords
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.compose import rows as graph
from quietcorpus.pipelines.compose.spec import RowsSpec
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.composed.fields import canonical
from quietcorpus.transforms.composed.release import ReleaseDocuments
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.privatizers.words import WordMechanism, WordsParameters
from quietcorpus.transforms.reading.documents import Documents

Make = Callable[..., PrivatizeWords]


@pytest.fixture
def words_of(word_index: Path) -> Make:
    """Makes the transform, at so small an epsilon that little of a word is left."""

    def make(release: str = "test", **changes: Any) -> PrivatizeWords:
        given: dict[str, Any] = {
            "index": word_index,
            "mechanism": "brr",
            "epsilon": 0.05,
            "text": "body",
            "id": "number",
            "keep": ["product"],
        }
        return PrivatizeWords(release, **given | changes)

    return make


@pytest.fixture
def docs(lee_texts: list[str]) -> list[dict[str, Any]]:
    """Rows of news texts, equal ones among them, in no order."""
    texts = [*lee_texts[:40], *lee_texts[:10], "", "4711 zqxunknown"]
    rows = [doc(number, text, f"p{number % 3}") for number, text in enumerate(texts)]
    random.shuffle(rows)
    return rows


def one_by_one(word_index: Path, docs: list[dict[str, Any]], key: ReleaseKey) -> list[str]:
    """Return the texts that the per-document path releases, each in a batch of its own."""
    source = IndexSource.resolve("mechanism.index", str(word_index))
    parameters = WordsParameters(WordMechanism.BRR, Fraction(1, 20), "word", "drop", source)
    privatizer = parameters.privatizer(key)
    found = []
    for row in docs:
        text = pa.array([row["body"]], pa.large_string())
        ids = [canonical(row["number"])]
        alone = Documents("", np.arange(1), text, pa.table({}), ids=ids)
        found += privatizer.release(alone).rows["text"].to_pylist()
    return found


def release_key(release: str = "test") -> ReleaseKey:
    rows = RowsSpec(release=release, text="body", id="number", keep=())
    return ReleaseKey.derive(bytes.fromhex(MASTER_KEY), release, rows.corpus)


def test_it_is_the_path_of_a_release(
    tmp_path: Path, word_index: Path, words_of: Make, docs: list[dict[str, Any]]
) -> None:
    # Kills: fields that are not asked for and pass, kept ones that change rows, texts that change
    # ids, a row that is lost, and noise of another address, such as one of the row's place.
    made = words_of(keep=["product", "number"])
    found = run(tmp_path, docs, made)
    texts = one_by_one(word_index, docs, release_key())
    assert sorted(found["rows"], key=lambda row: row["id"]) == sorted(
        (
            {"id": row["number"], "product": row["product"], "text": text}
            for row, text in zip(docs, texts, strict=True)
        ),
        key=lambda row: row["id"],
    )
    assert list(map(json.loads, found["card"])) == [made.card]
    assert found["errors"] == []
    assert (tmp_path / SEEN).exists()
    # Equal texts at the same time: noise is a row's own.
    equal = [text for row, text in zip(docs, texts, strict=True) if row["number"] in (3, 43)]
    assert equal[0] != equal[1]


class _FailsOnce(ReleaseDocuments):
    """Fails once, when its work is done."""

    failed = Path()

    def process(self, batch: Documents, side: Any = None) -> Iterator[Any]:
        yield from super().process(batch, side)
        if not self.failed.exists():
            self.failed.touch()
            raise RuntimeError("injected")


@pytest.mark.slow
def test_neither_order_nor_bundles_nor_retries_show(
    tmp_path: Path, words_of: Make, docs: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: noise, or a fresh id, that depends on a row's batch or place, or is drawn again by a
    # retry.
    for name in ("once", "again", "retried"):
        (tmp_path / name).mkdir()
    once = run(tmp_path / "once", docs, words_of())
    again = run(tmp_path / "again", docs[::-1], words_of(), bundle_repeat=1)
    assert once["rows"] == again["rows"]
    monkeypatch.setattr(_FailsOnce, "failed", tmp_path / "failed")
    monkeypatch.setattr(graph, "ReleaseDocuments", _FailsOnce)
    retried = run(tmp_path / "retried", docs, words_of(), BundleBasedDirectRunner())
    assert (tmp_path / "failed").exists()
    assert once["rows"] == retried["rows"]


@pytest.mark.parametrize("times", [0, 2])
def test_documents_that_an_engine_loses_or_doubles_fail_the_job(
    tmp_path: Path,
    words_of: Make,
    docs: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    times: int,
) -> None:
    # Kills: a document that is released twice, or not at all, since nothing compares what was
    # released with what was read.
    class Faulty(ReleaseDocuments):
        def process(self, batch: Documents, side: Any = None) -> Iterator[Any]:
            yield from [*super().process(batch, side)] * times

    monkeypatch.setattr(graph, "ReleaseDocuments", Faulty)
    with pytest.raises(Exception, match="the engine doubled a part of the corpus, or lost one"):
        run(tmp_path, docs, words_of())
    assert not (tmp_path / SEEN).exists()


def test_kept_fields_are_doubted(
    tmp_path: Path, words_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    # Kills: addresses and names that are kept by mistake, of which nobody is told; a warning that
    # quotes one.
    rows = [doc(n, "the report", f"zqx{n}@mail.org") for n in range(40)]
    run(tmp_path, rows, words_of(epsilon=0.1))
    (said,) = {one.getMessage() for one in caplog.records if one.name == "quietcorpus"}
    assert said.startswith("PrivatizeWords: keep: 'product' looks like e-mail addresses, and will ")
    assert "zqx" not in said


def _keep(row: Any, path: str) -> None:
    with Path(path).open("a") as file:
        file.write(json.dumps(row._asdict()) + "\n")


def test_the_check_of_types_in_a_run_passes(tmp_path: Path, words_of: Make) -> None:
    # Kills: annotations by which Beam looks for arguments that a guarded step does not have, and
    # batches that it takes for rows. Beam's own sinks do not pass.
    options = PipelineOptions(["--runtime_type_check"])
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        rows = pipeline | beam.Create([Doc(n, "the report", "b", "c") for n in range(9)])
        (rows | words_of()).rows | "write" >> beam.Map(_keep, str(tmp_path / "rows"))
    assert len((tmp_path / "rows").read_text().splitlines()) == 9


def test_another_release_or_field_has_noise_of_its_own(word_index: Path) -> None:
    # Kills: a key without the release, or without the field of the text, by which a row whose
    # subject and body are equal would show it.
    row = [doc(1, "the report of the fires is out " * 8)]
    body = RowsSpec(release="test", text="body", id="number", keep=())
    subject = RowsSpec(release="test", text="subject", id="number", keep=())
    other = RowsSpec(release="test", text="body", id="n", keep=())
    master = bytes.fromhex(MASTER_KEY)
    keys = [ReleaseKey.derive(master, "test", rows.corpus) for rows in (body, subject, other)]
    texts = [one_by_one(word_index, row, key)[0] for key in (*keys, release_key("another"))]
    assert len(set(texts)) == 4


# What is refused where the transform is made.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"release": "a b"}, "release: 'a b' is not allowed: "),
        ({"mechanism": "madlip"}, "mechanism: 'madlip' is not allowed: "),
        ({"epsilon": 0}, "epsilon: 0 is not allowed; give a positive, finite number"),
        ({"epsilon": "1"}, "epsilon: '1' is not a number; give a positive number"),
        ({"epsilon": 1e-9}, "epsilon: 1e-09 is so little that nothing of a word is left"),
        ({"epsilon": None}, "give exactly one of `epsilon`, which every word has, and "),
        ({"document_epsilon": 1}, "give exactly one of `epsilon`, which every word has, and "),
        ({"index": "/nowhere"}, "index: /nowhere is not an index: it has no manifest.json"),
        ({"out_of_vocabulary": "keep"}, "out_of_vocabulary: 'keep' is not allowed: "),
        ({"search": {"engine": "exact", "probe": 1}}, "search.probe: unknown key, did you mean "),
        ({"search": {"engine": "faiss-flat"}}, "search.engine: faiss-flat is not for brr; give "),
        ({"keep": ["body"]}, "keep: 'body' is the text; it is never copied to a release"),
        ({"keep": ["id"]}, "keep: 'id' is a name that releases use themselves, or is given twice"),
        ({"keep": "product"}, "keep: 'product' is no list; give a list of fields"),
        ({"keep": None}, "keep: None is no list; give a list of fields"),
        ({"id": "body"}, "id: 'body' is the text; name a field with a unique id"),
        ({"id": ""}, "id: '' is not allowed: "),
        ({"errors": "drop"}, "errors: 'drop' is not known; give raise or collect"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_line(words_of: Make, changes: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        words_of(**changes)
    assert str(raised.value).startswith(f"PrivatizeWords: {message}"), raised.value
    assert "\n" not in str(raised.value)


def test_an_unknown_argument_is_refused(words_of: Make) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        words_of(epsilom=1)


def test_without_a_master_key_nothing_is_made(
    words_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: a fresh key for each run, under which a retry of the whole pipeline would draw anew.
    monkeypatch.delenv("QUIETCORPUS_MASTER_KEY")
    with pytest.raises(InputError, match=r"^PrivatizeWords: QUIETCORPUS_MASTER_KEY: not set; set "):
        words_of()


# What is refused where the graph is built.


class Odd(NamedTuple):
    """Rows whose fields have types that cannot be used."""

    number: float
    body: bytes
    product: list[str]


class Small(NamedTuple):
    """A row with whole numbers of few bits."""

    number: np.int16
    body: str
    product: np.int8


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (Doc, {"text": "txt"}, "text: the input has no field 'txt'; it has 'number', 'body', "),
        (Doc, {"id": "n"}, "id: the input has no field 'n'; it has 'number', 'body', "),
        (Doc, {"keep": ["label"]}, "keep: the input has no field 'label'; it has 'number', "),
        (Doc, {"text": "number", "id": "body"}, "text: the field 'number' is of type int64; give "),
        (Odd, {}, "text: the field 'body' is of type bytes; give one whose type is a string"),
        (Odd, {"text": "body"}, "text: the field 'body' is of type bytes; give one whose type "),
        (Small, {"keep": ["product"]}, "keep: the field 'product' is of type int8, of which Beam"),
        (dict, {}, "the input's rows have no schema; give rows whose fields have types, such as "),
    ],
    ids=str,
)
def test_fields_are_found_in_the_schema(
    words_of: Make, kind: type, changes: Any, message: str
) -> None:
    rows = beam.Pipeline() | beam.Create([1]) | beam.Map(str).with_output_types(kind)
    with pytest.raises(InputError) as raised:
        rows | words_of(**changes)
    assert str(raised.value).startswith(f"PrivatizeWords: {message}"), raised.value


def test_numbers_that_do_not_fit_are_refused(tmp_path: Path, words_of: Make) -> None:
    # Kills: a number that fails where rows are written, after others have been released.
    made = words_of(errors="collect", keep=["number"])
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        given = pipeline | beam.Create([(-32768, "a", 1), (32767, "b", 1), (32768, "c", 1)])
        rows = given | beam.MapTuple(Small).with_output_types(Small)
        reasons = (rows | made).errors | beam.Map(lambda row: row.reason)
        reasons | beam.io.WriteToText(str(tmp_path / "reasons"))
    (found,) = tmp_path.glob("reasons*")
    assert found.read_text() == "the field 'number' does not fit into 16 bits\n"


def test_dictionaries_under_a_schema_are_told(words_of: Make) -> None:
    # Kills: a null id for a row of another class than its schema says.
    pipeline = beam.Pipeline(runner=FnApiRunner())
    given = pipeline | beam.Create([1]) | beam.Map(lambda _: {"number": 1, "body": "a"})
    (given | beam.Map(lambda row: row).with_output_types(Doc)) | words_of()
    with pytest.raises(Exception, match="PrivatizeWords: a row cannot be read: it is a dictionary"):
        pipeline.run()


def test_weaknesses_are_logged(words_of: Make, caplog: pytest.LogCaptureFixture) -> None:
    # Kills: a guarantee that means nothing and is told on a card that nobody opens.
    words_of(epsilon=0.1)
    assert not caplog.records
    words_of(epsilon=10)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("PrivatizeWords: not protected: ")


def test_input_without_an_end_is_refused(words_of: Make) -> None:
    # Kills: a stream, in which no id is known to be unique before the end.
    rows = beam.Pipeline() | beam.Create([Doc(1, "a", "b", "c")])
    windowed = rows | beam.WindowInto(FixedWindows(60))
    with pytest.raises(
        InputError, match=r"^PrivatizeWords: the input is divided into windows, or "
    ):
        windowed | words_of()
    rows.is_bounded = False
    with pytest.raises(InputError, match=r"^PrivatizeWords: the input is unbounded: ids must be "):
        rows | "of a stream" >> words_of()


# What workers refuse: nothing reaches a sink of the user's own.


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([doc(1, None)], "a row cannot be read: the field 'body' is null; drop such rows before"),
        ([doc(1, 7)], "a row cannot be read: the field 'body' is not a string; drop such rows "),
        ([doc(1, SURROGATE)], "a row cannot be read: the field 'body' is not valid UTF-8; drop "),
        ([doc(None, "a")], "a row cannot be read: the field 'number' is null; drop such rows "),  # type: ignore[arg-type]
        ([doc(True, "a")], "a row cannot be read: the field 'number' is not a whole number; drop"),
        ([doc(1, "a", 3)], "a row cannot be read: the field 'product' is not a string; drop such "),
        ([doc(1, "a"), doc(1, "b")], "id: the column 'number' repeats values (at least 1 times): "),
        (
            [
                doc(n, f"the report {n} of the fires is out", f"Report {n} of the fires is out")
                for n in range(40)
            ],
            "keep: 'product' repeats the text, or long parts of it, which no mechanism would ",
        ),
    ],
    ids=["null text", "no string", "surrogate", "null id", "bool id", "kept", "repeated", "copies"],
)
def test_a_job_that_fails_releases_no_row(
    tmp_path: Path, words_of: Make, rows: list[dict[str, Any]], message: str
) -> None:
    # Kills: rows that reach a sink before the whole input has passed, and errors that quote a row.
    good = [doc(number, "the zqxgood report") for number in range(100, 400)]
    with pytest.raises(Exception, match="PrivatizeWords") as raised:
        run(tmp_path, [*good, *rows], words_of())
    said = str(raised.value)
    assert f"PrivatizeWords: {message}" in said
    assert "zqx" not in said
    assert not (tmp_path / SEEN).exists()


def test_unreadable_rows_may_be_collected(tmp_path: Path, words_of: Make) -> None:
    # Kills: an unreadable row that is released, is counted as a document, or takes another with it.
    rows = [doc(1, "the report"), doc(2, None), doc(None, "the fires"), doc(1, None)]  # type: ignore[arg-type]
    found = run(tmp_path, rows, words_of(errors="collect"))
    assert len(found["rows"]) == 1
    assert found["errors"] == [
        {"id": 1, "reason": "the field 'body' is null"},
        {"id": 2, "reason": "the field 'body' is null"},
        {"id": None, "reason": "the field 'number' is null"},
    ]


@pytest.mark.parametrize(
    ("key", "message"),
    [(None, "not set in a worker; set it on every worker"), (OTHER_KEY, "another master key")],
    ids=["absent", "another"],
)
def test_workers_need_the_launchers_key(
    tmp_path: Path,
    words_of: Make,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    message: str,
) -> None:
    # Kills: a worker that draws a key of its own, so that two draw two noises for one row.
    made = words_of()
    if key is None:
        monkeypatch.delenv("QUIETCORPUS_MASTER_KEY")
    else:
        monkeypatch.setenv("QUIETCORPUS_MASTER_KEY", key)
    with pytest.raises(Exception, match=message):
        run(tmp_path, [doc(1, "the report")], made)
    assert not (tmp_path / SEEN).exists()


def test_the_card_says_what_no_pipeline_promises(words_of: Make) -> None:
    # Kills: a card without the statement, the index, or part 2 of the limits.
    card = words_of(keep=["product", "number"]).card
    assert card["guarantee"]["statement"].startswith("Replacing any words of a document by others")
    assert card["guarantee"]["adjacency"].startswith("the same rows under the same ids, ")
    assert card["budget"]["total"]["epsilon"] == 0.05
    assert [one["name"] for one in card["artefacts"]] == ["index"]
    assert (card["columns"], card["id_column"]) == (["id", "product"], "number")
    limits = " ".join(card["guarantee"]["not_protected"])
    assert "the fields id (the input's number), product: copied as they are" in limits
    assert "row group" not in limits
    said = " ".join(card["not_promised"])
    parts = (
        "drops, joins or changes by their content",
        "other sinks",
        "order of rows",
        "attempts",
        "those of this transform are exact",
        "of every row where noise is drawn for a vocabulary, a histogram or counts",
        "released rows that come in again, need a release id of their own",
        "no ledger",
    )
    for part in parts:
        assert part in said, part
