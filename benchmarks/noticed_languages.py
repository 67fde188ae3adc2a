"""Which corpora are noticed to be in another language than a list of words, or than public texts.

    python benchmarks/noticed_languages.py --data ../shared/data --folder build/noticed-languages

Lists are of `index build-vocabulary`, of 20,000 words; of languages that no corpus is in, of 1,000.
Public texts are half of a corpus, as of a pool or candidates, and the other half is private. Each
cell is the part of the artefact's use of its frequent words that the corpus shares; below the
threshold, the operator is warned. Printed are the threshold that half of the corpora suggest, and
the errors of the one in use on either half.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import wordfreq

import quietcorpus as qc
from quietcorpus.indexes.frequent_words import (
    FrequentCounts,
    FrequentWordCounter,
    FrequentWords,
)
from quietcorpus.indexes.languages import LANGUAGES
from quietcorpus.indexes.listed_words import ListedWords
from quietcorpus.indexes.tokenizers import ICU_WORDS_NAME, UNICODE_WORDS, Tokenizer
from quietcorpus.indexes.vocabulary import Vocabulary

CORPORA = {
    **{"ar": "lang_ar", "de": "lang_de", "ru": "lang_ru", "tr": "lang_tr", "zh": "lang_zh"},
    **{"en reviews": "imdb_reviews", "ja articles": "lang_ja"},
    **{"es": "lang_es", "fr": "lang_fr", "hi": "lang_hi", "th": "lang_th"},
    **{
        "ja reviews": "lang_ja",
        "en complaints": "cfpb_complaints",
        "en commits": "commit_messages",
    },
}
TUNED = ("ar", "de", "ru", "tr", "zh", "en reviews", "ja articles")
MOST_TEXTS = 4_000
Cells = Mapping[tuple[str, str], float]
"""By corpus and artefact: the part of its use that the corpus shares."""


def read(data: Path, corpus: str) -> pa.Array:
    name = CORPORA[corpus]
    table = pq.ParquetFile(data / f"{name}.parquet").read(use_threads=False)
    if name == "lang_ja":
        are_articles = pc.equal(table["label"], "encyclopedia")
        table = table.filter(are_articles if corpus == "ja articles" else pc.invert(are_articles))
    texts = table["text"].drop_null().combine_chunks()
    return texts.cast(pa.large_string())[:MOST_TEXTS]


def is_of(artefact: str, corpus: str) -> bool:
    return artefact[:2] == corpus[:2]


def of_lists(texts: Mapping[str, pa.Array], folder: Path) -> Cells:
    """Compare corpora with lists of words, as a release counts their words."""
    cells = {}
    own = {name[:2] for name in texts}
    for language in sorted(set(wordfreq.available_languages()) & set(LANGUAGES)):
        path = folder / language
        if not path.exists():
            qc.build_vocabulary(path, language, words=20_000 if language in own else 1_000)
        listed = (path / "words.txt").read_text(encoding="utf-8").split()
        digest = hashlib.sha256((path / "words.txt").read_bytes()).hexdigest()
        found = ListedWords.of_manifest((path / "manifest.json").read_bytes(), digest)
        assert found is not None
        icu = language in ("ja", "zh")
        tokenizer = Tokenizer.here(ICU_WORDS_NAME, language) if icu else UNICODE_WORDS
        vocabulary = Vocabulary(listed, tokenizer)
        for name, private in texts.items():
            tokens = tokenizer.tokenize(private)
            counts = FrequentCounts.of_terms(len(tokens.starts), vocabulary.look_up(tokens)[1])
            cells[name, language] = found.frequent.agreement(counts)
    return cells


def of_texts(texts: Mapping[str, pa.Array]) -> Cells:
    """Compare half of each corpus with the other half of each, as with a pool or candidates."""
    halves = {
        name: [own.take(pa.array(np.arange(start, len(own), 2))) for start in (0, 1)]
        for name, own in texts.items()
    }
    cells = {}
    for artefact, (public, _) in halves.items():
        frequent = FrequentWords.of(public)
        assert frequent is not None
        counter = FrequentWordCounter(frequent)
        for name, (_, private) in halves.items():
            cells[name, artefact] = frequent.agreement(counter.count(private))
    return cells


def show(title: str, cells: Cells) -> None:
    artefacts = list(dict.fromkeys(artefact for _, artefact in cells))
    shown = [one for one in artefacts if any(is_of(one, name) for name in CORPORA)]
    others = [one for one in artefacts if one not in shown]
    print(f"\n| {title} | {' | '.join(shown)} |{' the most of others |' * bool(others)}")
    print("|---" * (1 + len(shown) + bool(others)) + "|")
    for name in CORPORA:
        row = [
            f"**{cells[name, one]:.2f}**" if is_of(one, name) else f"{cells[name, one]:.2f}"
            for one in shown
        ]
        if others:
            most = max(others, key=lambda one: cells[name, one])
            row.append(f"{cells[name, most]:.2f} ({most})")
        print(f"| {name} | {' | '.join(row)} |")


def judge(cells: Cells) -> None:
    for half, of in (("tuned", True), ("tested", False)):
        some = {pair: part for pair, part in cells.items() if (pair[0] in TUNED) is of}
        own = {pair: part for pair, part in some.items() if is_of(pair[1], pair[0])}
        foreign = {pair: part for pair, part in some.items() if pair not in own}
        least, most = min(own.values()), max(foreign.values())
        warned = [_is_warned(part) for part in own.values()]
        noticed = [_is_warned(part) for part in foreign.values()]
        missed = [pair for pair, part in foreign.items() if not _is_warned(part)]
        print(
            f"{half}: own at least {least:.2f}, others at most {most:.2f}, between them "
            f"{np.sqrt(least * most):.2f}; {sum(warned)} of {len(own)} false alarms, "
            f"{sum(noticed)} of {len(foreign)} noticed; missed: {missed}"
        )


def _is_warned(part: float) -> bool:
    one = FrequentWords(("the",), (1.0,))
    return one.is_foreign(FrequentCounts(10**6, (round(part * 10**6),)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    texts = {name: read(asked.data, name) for name in CORPORA}
    for title, cells in (
        ("corpus / list", of_lists(texts, asked.folder)),
        ("corpus / public texts", of_texts(texts)),
    ):
        show(title, cells)
        judge(cells)


if __name__ == "__main__":
    main()
