"""A dataset that Hugging Face's own library has saved is a corpus: its folder names its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.reading.documents import Corpus
from quietcorpus.transforms.reading.sources import plan, read, states

TEXTS = [f"text of number {i}" for i in range(10)]


def saved(folder: Path, shards: int = 3, texts: list[str] | None = None) -> str:
    """Save a dataset with labels and lists; where it is."""
    texts = TEXTS if texts is None else texts
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "tags": datasets.List(datasets.Value("string")),
        }
    )
    columns = {
        "text": texts,
        "label": [i % 2 for i in range(len(texts))],
        "tags": [[text[-1]] for text in texts],
    }
    made = datasets.Dataset.from_dict(columns, features=features)
    made.save_to_disk(str(folder), num_shards=shards)
    return str(folder)


def texts_of(path: str, **columns: Any) -> list[str]:
    corpus = Corpus(path, **columns)
    return [
        text
        for split in plan(corpus).splits
        for batch in read(split, corpus)
        for text in batch.texts.to_pylist()
    ]


def test_a_folder_is_a_corpus(tmp_path: Path) -> None:
    folder = saved(tmp_path / "data")
    corpus = Corpus(folder, keep=("label", "tags"))
    planned = plan(corpus)
    assert len(planned.splits) == 3
    assert texts_of(folder) == texts_of(f"{folder}/*.arrow") == TEXTS
    rows = [row for s in planned.splits for b in read(s, corpus) for row in b.columns.to_pylist()]
    assert rows == [{"label": i % 2, "tags": [str(i)]} for i in range(10)]
    # What the library writes beside the values says which dataset it was, and is not copied.
    assert planned.schema.metadata is None


def test_the_settings_of_a_dataset_are_no_documents(tmp_path: Path) -> None:
    # Kills: each line of `state.json` counted as a record that cannot be read.
    folder = saved(tmp_path / "data")
    planned = plan(Corpus(f"{folder}/*"))
    assert [split.format for split in planned.splits] == ["arrow"] * 3
    assert texts_of(f"{folder}/*") == TEXTS


def test_a_selection_is_read_as_it_was_saved(tmp_path: Path) -> None:
    # Kills: the rows as they lie in the files of the dataset that was selected from.
    whole = datasets.Dataset.from_dict({"text": TEXTS})
    whole.select([7, 2]).save_to_disk(str(tmp_path / "data"))
    assert texts_of(str(tmp_path / "data")) == [TEXTS[7], TEXTS[2]]


def test_files_of_an_earlier_dataset_are_left_out(tmp_path: Path) -> None:
    # Kills: a glob in place of the list: documents that their owner has deleted.
    folder = saved(tmp_path / "data", shards=3)
    saved(tmp_path / "data", shards=2, texts=TEXTS[:5])
    assert len(list((tmp_path / "data").glob("*.arrow"))) == 5
    assert texts_of(folder) == TEXTS[:5]


def test_a_changed_file_is_another_corpus(tmp_path: Path) -> None:
    # Kills: a folder whose files do not tell it apart.
    corpus = Corpus(saved(tmp_path / "data"))
    before = plan(corpus)
    assert states(corpus) == before.files
    saved(tmp_path / "data", texts=TEXTS[::-1])
    assert states(corpus) != before.files
    assert plan(corpus).corpus_digest(corpus) != before.corpus_digest(corpus)


def test_one_of_several_is_to_be_named(tmp_path: Path) -> None:
    both = {name: datasets.Dataset.from_dict({"text": [name]}) for name in ("train", "test")}
    datasets.DatasetDict(both).save_to_disk(str(tmp_path / "all"))
    with pytest.raises(InputError) as raised:
        plan(Corpus(f"{tmp_path}/all"))
    assert str(raised.value) == (
        f"input.path: {tmp_path}/all holds several datasets (train, test); give the folder of "
        f"one, or {tmp_path}/all/*/*.arrow for all"
    )
    assert texts_of(f"{tmp_path}/all/test") == ["test"]
    assert texts_of(f"{tmp_path}/all/*/*.arrow") == ["test", "train"]


def test_any_other_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{tmp_path} is a folder without files of a known"):
        plan(Corpus(str(tmp_path)))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "state.json is not a JSON object; save the dataset again"),
        ("[]", "state.json is not a JSON object; save the dataset again"),
        ("{}", "has a state.json that does not name its files; save the dataset again"),
        ({"_data_files": [{"filename": "../secret.arrow"}]}, "that does not name its files"),
        ({"_data_files": [{"filename": "x*.arrow"}]}, "that does not name its files"),
        ({"_data_files": ["x"]}, "that does not name its files"),
        (
            {"_data_files": [{"filename": "none.arrow"}]},
            "none.arrow is missing, though the dataset",
        ),
        ({"_indices_data_files": ["x"]}, "is a selection of rows that an old version saved"),
    ],
)
def test_a_damaged_folder_is_one_line(tmp_path: Path, state: Any, message: str) -> None:
    folder = saved(tmp_path / "data")
    text = state if isinstance(state, str) else json.dumps(state)
    (tmp_path / "data" / "state.json").write_text(text)
    with pytest.raises(InputError) as raised:
        plan(Corpus(folder))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_was_lost_is_refused(tmp_path: Path) -> None:
    # Kills: a corpus without the documents of a file that was not copied along.
    folder = saved(tmp_path / "data")
    first = sorted((tmp_path / "data").glob("*.arrow"))[0]
    shutil.move(first, tmp_path)
    with pytest.raises(InputError, match=f"{first} is missing, though the dataset has it"):
        plan(Corpus(folder))


def test_a_glob_leaves_out_what_a_dataset_does_not_name(tmp_path: Path) -> None:
    # Kills: documents that their owner has deleted, and each document twice: the library keeps the
    # results of `map` beside the dataset.
    folder = saved(tmp_path / "data", shards=3)
    saved(tmp_path / "data", shards=2, texts=TEXTS[:5])
    datasets.load_from_disk(folder).map(lambda row: {"text": row["text"] + "!"})
    assert len(list((tmp_path / "data").glob("cache-*.arrow"))) == 1
    assert texts_of(f"{folder}/*.arrow") == TEXTS[:5]
    assert texts_of(f"{tmp_path}/*/*.arrow") == TEXTS[:5]
    assert texts_of(f"{folder}/data-*.arrow") == TEXTS[:5]


def test_a_glob_of_the_librarys_own_cache(tmp_path: Path) -> None:
    # Kills: results of `map` and `filter` read beside the dataset that they were made of.
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    (tmp_path / "corpus.jsonl").write_text(lines)
    loaded = datasets.load_dataset(
        "json", data_files=f"{tmp_path}/corpus.jsonl", cache_dir=f"{tmp_path}/cache", split="train"
    )
    loaded.map(lambda row: {"text": row["text"] + "!"}).filter(lambda row: "3" in row["text"])
    assert len(list((tmp_path / "cache").glob("**/*.arrow"))) == 3
    assert texts_of(f"{tmp_path}/cache/**/*.arrow") == TEXTS
