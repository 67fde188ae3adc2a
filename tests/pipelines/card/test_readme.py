"""The card for people."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
from golden_releases import fixed, publish
from machine import BUILD, ROOT, required

from quietcorpus.mechanisms.accounting.guarantees import round_up
from quietcorpus.pipelines.card.readme import mechanism
from quietcorpus.pipelines.card.verify import read_card

if TYPE_CHECKING:
    from tests.conftest import Workspace


def test_numbers_are_shown_in_few_digits() -> None:
    # Kills: a delta of 1.0000000000000002e-06 for a millionth; an epsilon that is rounded down.
    card = read_card(str(ROOT / "tests" / "fixtures" / "formats" / "card-v1"))
    given = {"epsilon": round_up(Fraction(2, 3)), "histogram_epsilon": round_up(Fraction(1, 10**6))}
    made = card.model_copy(update={"mechanism": card.mechanism.model_copy(update=given)})
    shown = dict(mechanism(made))
    assert (shown["epsilon"], shown["histogram_epsilon"]) == ("0.666667", "1e-6")


# The lines of a release's README, copied: they open it in the tools that people have.


BAGS = {"input.id": "key", "input.keep": ["key", "product"]}
HISTOGRAM = {"mechanism": {"kind": "histogram", "precision": 2, "epsilon": 4}}
OTHERS = ("words", "sentence-embeddings", "public-texts", "word-embeddings")
"""Kinds whose rows have no numbers of terms."""
TABLES = ("texts.parquet", "vectors.parquet")
"""The tables of kinds that release no rows of documents."""
TOOLS = ("quietcorpus", "pandas", "Polars", "DuckDB", "Spark", "Hugging Face `datasets`")


def lines(output: Path) -> dict[str, str]:
    """The lines for each tool."""
    text = (output / "README.md").read_text("utf-8").split("## How to open it\n")[1]
    blocks = re.findall(r"\n([^\n]*):\n\n```python\n(.*?)```", text.split("\n## ")[0], re.DOTALL)
    assert len(blocks) == len(TOOLS)
    found = {tool: block for tool, (_, block) in zip(TOOLS, blocks, strict=True)}
    assert [said for said, _ in blocks[1:]] == list(TOOLS[1:])
    return found


@pytest.fixture
def output(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release of bags of words of which one is empty, as the working folder."""
    records = [{"text": "hello quiet world", "key": f"k{i}", "product": "loan"} for i in range(20)]
    workspace.json_lines([*records, {"text": "", "key": "empty", "product": "card"}])
    # At this epsilon all noise is zero, but for a chance of 1e-20.
    workspace.release(BAGS | {"mechanism.precision": 1, "mechanism.epsilon": 50})
    monkeypatch.chdir(workspace.output)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", workspace.folder / "cache")
    return workspace.output


def run(code: str) -> dict[str, Any]:
    """The names that the lines leave."""
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_each_tool_opens_a_release_and_its_words(output: Path) -> None:
    # Kills: a line that does not run, and term numbers joined to other words than the vocabulary's.
    found = lines(output)
    expected = {f"k{i}": ["hello", "quiet", "world"] for i in range(20)} | {"empty": []}
    rows = run(found["quietcorpus"])["rows"]
    assert rows.schema.names == ["id", "product", "terms", "counts"]
    assert dict(zip(rows["id"].to_pylist(), rows["terms"].to_pylist(), strict=True)) == expected
    frame = run(found["pandas"])["rows"]
    assert dict(zip(frame["id"], frame["words"], strict=True)) == expected
    hugging = run(found["Hugging Face `datasets`"])["rows"]
    assert dict(zip(hugging["id"], hugging["words"], strict=True)) == expected
    pairs = Counter((id_, word, 1, "loan") for id_, own in expected.items() for word in own)
    columns = ["id", "term", "count", "product"]
    polars = run(found["Polars"])["words"]
    assert Counter(polars.select(columns).rows()) == pairs
    duck = run(found["DuckDB"])["words"]
    assert Counter(duck.select(*columns).fetchall()) == pairs

    # As from the hub, by the front matter. Kills: a table of the wrong files as the default one.
    loaded = datasets.load_dataset(str(output), split="train")
    assert sorted(loaded.column_names) == ["counts", "id", "product", "terms"]
    assert len(loaded) == 21


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small release of each of the other kinds."""
    folder = tmp_path_factory.mktemp("golden")
    with fixed(folder):
        for kind in OTHERS:
            publish(kind)
    return folder


def plain(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows in an order of their own, with all arrays as lists."""
    return sorted(json.dumps(dict(row), sort_keys=True, default=np.ndarray.tolist) for row in rows)


def table_of(release: Path) -> list[str]:
    """The rows of a release's table, as PyArrow reads them."""
    (place,) = (release / path for path in (*TABLES, "data") if (release / path).exists())
    return plain(pq.read_table(place).to_pylist())


@pytest.mark.parametrize("kind", OTHERS)
def test_each_tool_opens_the_other_kinds(
    kind: str, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills: lines that name another file than a kind's table, or that join words where none are.
    release = golden / f"out-{kind}"
    monkeypatch.chdir(release)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", golden / "cache")
    found = lines(release)
    rows = {tool: run(found[tool])["rows"] for tool in TOOLS if tool != "Spark"}
    read = {
        "quietcorpus": rows["quietcorpus"].to_pylist(),
        "pandas": rows["pandas"].to_dict("records"),
        "Polars": rows["Polars"].to_dicts(),
        "DuckDB": rows["DuckDB"].to_arrow_table().to_pylist(),
        "Hugging Face `datasets`": rows["Hugging Face `datasets`"].to_list(),
    }
    expected = table_of(release)
    assert expected
    assert {tool: plain(own) == expected for tool, own in read.items()} == dict.fromkeys(read, True)


def spark(code: str) -> str:
    """Return what some lines print, in a process that has Spark."""
    folder = BUILD / "pyspark"
    if not folder.exists():
        required("`make clusters` installs Spark")
    path = [folder, *(folder / "pyspark" / "python" / "lib").glob("py4j-*.zip")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(map(str, path)), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_spark_opens_a_release_and_its_words(output: Path, golden: Path) -> None:
    # One process for all kinds: it is the start that takes long. A JVM stays in the folder where
    # it began, so that the others' files are named in full. Kills: as above, for Spark.
    show = "print(sorted(map(tuple, words.select('id', 'term', 'count', 'product').collect())))\n"
    code = f"import json\n{lines(output)['Spark']}{show}"
    for kind in OTHERS:
        release = golden / f"out-{kind}"
        code += lines(release)["Spark"].replace('parquet("', f'parquet("{release}/')
        code += "print(json.dumps([row.asDict() for row in rows.collect()]))\n"
    of_bags, *others = spark(code).splitlines()
    pairs = [(f"k{i}", word, 1, "loan") for i in range(20) for word in ("hello", "quiet", "world")]
    assert of_bags == f"{sorted(pairs)}"
    for kind, own in zip(OTHERS, others, strict=True):
        assert plain(json.loads(own)) == table_of(golden / f"out-{kind}"), kind


def test_a_release_without_rows_of_documents(workspace: Workspace) -> None:
    # Kills: lines that look for `data`, or for words to join, where there are none.
    vocabulary = {"public": "vocabulary.txt"}
    workspace.release({"mechanism": HISTOGRAM["mechanism"] | {"vocabulary": vocabulary}})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workspace.output)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", workspace.folder / "cache")
        found = lines(workspace.output)
        terms = {
            tool: list(run(found[tool])["rows"]["term"])
            for tool in ("pandas", "Polars", "Hugging Face `datasets`")
        }
        terms["DuckDB"] = [row[1] for row in run(found["DuckDB"])["rows"].fetchall()]
        terms["quietcorpus"] = run(found["quietcorpus"])["rows"]["term"].to_pylist()
    expected = (workspace.folder / "vocabulary.txt").read_text().split()
    assert all(own == expected for own in terms.values())
