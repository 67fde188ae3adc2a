"""Every kind that needs no encoder, in French, German, Chinese, Japanese and Arabic.

Texts are drawn of sentences that were written for this test.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_specs import WEAK

import quietcorpus as qc
from quietcorpus.indexes.tokens.tokenizers import ICU_WORDS_NAME, Tokenizer

pytest.importorskip("icu4py")

CANARY = "zqxcanary"
DOCUMENTS = 120
SENTENCES = {
    "fr": [
        "L'été, nous marchons jusqu'à l'ancien moulin au bord de l'eau.",
        "La boulangère d'en face n'ouvre qu'à huit heures.",
        "Aujourd'hui il pleut sur les vignes et sur la forêt.",
        "Mes voisins ont planté des pommiers dans leur jardin.",
        "Le train de Lyon arrive souvent avec du retard.",
    ],
    "de": [
        "Im Sommer gehen wir oft zur alten Mühle am Fluss.",
        "Die Bäckerei gegenüber öffnet erst um acht Uhr.",
        "Heute regnet es über den Straßen der großen Stadt.",
        "Meine Nachbarn haben Apfelbäume in den Garten gepflanzt.",
        "Der Zug nach München kommt häufig zu spät.",
    ],
    "zh": [
        "夏天我们常常走到河边的老磨坊。",
        "对面的面包店早上八点才开门。",
        "今天的雨把城市的街道都打湿了。",
        "我的邻居在花园里种了苹果树。",
        "去北京的火车经常晚点。",
    ],
    "ja": [
        "夏になると、私たちは川のそばの古い水車小屋まで歩きます。",
        "向かいのパン屋は朝八時に開きます。",
        "今日は雨が降って、町の道路が濡れています。",
        "隣の人は庭にりんごの木を植えました。",
        "東京へ行く電車はよく遅れます。",
    ],
    "ar": [
        "في الصيف نمشي كثيرًا إلى الطاحونة القديمة قرب النهر.",
        "يفتح المخبز المقابل أبوابه في الساعة الثامنة.",
        "اليوم تمطر السماء فوق شوارع المدينة الكبيرة.",
        "زرع جيراني أشجار التفاح في الحديقة.",
        "يصل القطار إلى القاهرة متأخرًا في العادة.",
    ],
}
USERS = {"user": "who", "users": 60, "delta": 1e-5, "dimensions": 4, "few_users": "accept"}
BLOCKS: dict[str, dict[str, Any]] = {
    "words": {"kind": "words", "mechanism": "madlib", "epsilon": 10**4},
    "codes": {"kind": "words", "mechanism": "brr", "epsilon": 0.5},
    "histogram": {"kind": "histogram", "precision": 1, "epsilon": 60},
    "bags": {
        "kind": "bag-of-words",
        "precision": 1,
        "epsilon": 60,
        "compression": {"method": "none"},
    },
    "counted": {"kind": "word-embeddings", "method": "cooccurrence", "epsilon": 60, **USERS},
    "trained": {
        "kind": "word-embeddings",
        "method": "sgd",
        "epsilon": 8,
        "training": {"steps": 3, "lot": 30},
        **USERS,
    },
    "texts": {"kind": "public-texts", "epsilon": 8, "delta": 1e-6, "nearest": 3},
}


def drawn(language: str, seed: int) -> list[str]:
    """Draw texts of some sentences each."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(2, 5, DOCUMENTS)
    return [" ".join(generator.choice(SENTENCES[language], size)) for size in sizes]


def words_of(language: str, texts: list[str]) -> list[list[str]]:
    """Find the words of texts."""
    tokens = Tokenizer.here(ICU_WORDS_NAME, language).tokenize(pa.array(texts, pa.large_string()))
    raw = tokens.data.tobytes()
    found = [raw[a:b].decode() for a, b in zip(tokens.starts, tokens.ends, strict=True)]
    bounds = tokens.offsets.tolist()
    return [found[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]


@pytest.fixture(scope="module", params=SENTENCES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, called like its language, with a corpus, a vocabulary, an index and a pool."""
    language: str = request.param
    folder = tmp_path_factory.mktemp("kinds") / language
    folder.mkdir()
    texts = [f"{text} {CANARY}" for text in drawn(language, 1)]
    users = [f"u{number % 60}" for number in range(DOCUMENTS)]
    pq.write_table(pa.table({"text": texts, "who": users}), folder / "corpus.parquet")
    words = list(Counter(w for own in words_of(language, SENTENCES[language]) for w in own))
    (folder / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    generator = np.random.default_rng(1)
    rows = [" ".join([word, *map(str, generator.normal(size=8).round(3))]) for word in words]
    (folder / "v.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    spoken = {"tokenizer": ICU_WORDS_NAME, "language": language}
    qc.build_index(folder / "v.txt", folder / "index", provenance="public", bits=64, **spoken)
    pq.write_table(pa.table({"text": sorted(set(drawn(language, 2)))}), folder / "public.parquet")
    source = folder / "public.parquet"
    qc.build_pool(source, folder / "pool", provenance="public", encoder="lsa", **spoken)
    return folder


def spec_of(folder: Path, name: str) -> dict[str, Any]:
    """Return the spec of a release of the corpus."""
    block = dict(BLOCKS[name])
    tokenizer = {"name": ICU_WORDS_NAME, "language": folder.name}
    if block["kind"] == "words":
        block |= {"index": str(folder / "index"), "tokenizer": tokenizer}
    elif block["kind"] == "public-texts":
        block["pool"] = str(folder / "pool")
    else:
        public = {"public": str(folder / "words.txt")}
        block |= {"vocabulary": public, "tokenizer": tokenizer}
    corpus = {"path": str(folder / "corpus.parquet")}
    output = str(folder / "released" / name)
    whole = {"release": name, "input": corpus, "output": output, "mechanism": block}
    return whole | {"accept": WEAK}


def release(folder: Path, name: str) -> tuple[Any, Any]:
    """Release the corpus, and return the card and what a reader loads."""
    spec = spec_of(folder, name)
    output = Path(spec["output"])
    card = qc.release(spec)
    qc.verify(output)
    for path in output.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes()
    return card, qc.load(output, words=name == "bags")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "trained")) for name in BLOCKS]
)
def test_a_kind_finds_the_words_of_a_language(made: Path, name: str) -> None:
    # Next to no noise where that can be. Kills: a kind that reads texts by another rule than it is
    # told, or its artefacts by another than its texts.
    card, found = release(made, name)
    listed = (made / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    texts = pq.ParquetFile(made / "corpus.parquet").read(use_threads=False)["text"].to_pylist()
    known = [[w for w in own if w in set(listed)] for own in words_of(made.name, texts)]
    assert all(len(own) > 5 for own in known)
    if name != "texts":
        assert card.mechanism.tokenizer.startswith(f"{ICU_WORDS_NAME} {made.name} (")
    rows = found.rows
    if name == "words":
        assert sorted(rows["text"].to_pylist()) == sorted(map(" ".join, known))
    elif name == "codes":
        released = [text.split(" ") for text in rows["text"].to_pylist()]
        assert {word for own in released for word in own} <= set(listed)
        assert sorted(map(len, released)) == sorted(map(len, known))
    elif name == "histogram":
        weights = zip(rows["term"].to_pylist(), rows["weight"].to_pylist(), strict=True)
        assert {term: n for term, n in weights if n} == Counter(w for own in known for w in own)
    elif name == "bags":
        pairs = zip(rows["terms"].to_pylist(), rows["counts"].to_pylist(), strict=True)
        bags = [sorted(dict(zip(*pair, strict=True)).items()) for pair in pairs]
        assert sorted(bags) == sorted(sorted(Counter(own).items()) for own in known)
    elif name == "texts":
        public = pq.ParquetFile(made / "public.parquet").read(use_threads=False)["text"]
        assert set(rows["text"].to_pylist()) <= set(public.to_pylist())
        assert len(rows)
    else:
        assert set(rows["word"].to_pylist()) <= set(listed)
        assert len(rows) > 5
        assert np.isfinite(np.array(rows["vector"].to_pylist())).all()


@pytest.mark.slow
def test_an_evaluation_reads_the_language_as_the_release_did(made: Path, tmp_path: Path) -> None:
    # There is next to no noise. Kills: an evaluation that divides the corpus or the released texts
    # by another rule: its counts are then not the released ones, and its words not the index's.
    for name, expected in (
        ("histogram", {"histogram-error": 0, "histogram-top": 1}),
        ("words", {"unchanged": 1}),
    ):
        spec = spec_of(made, name) | {"output": str(tmp_path / name)}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(spec))
        qc.release(spec)
        content = qc.evaluate(
            tmp_path / name,
            against=made / "corpus.parquet",
            output=tmp_path / "report" / name,
            spec=tmp_path / f"{name}.yaml",
            draws=2,
            audits=False,
        )
        found = {
            one["measure"]: one["mean"] for one in content["figures"] if one["subject"] == "release"
        }
        assert {measure: found[measure] for measure in expected} == expected
