"""A datasheet of a release, in Markdown.

Source: Gebru, Morgenstern, Vecchione, Wortman Vaughan, Wallach, Daume and Crawford, Datasheets for
Datasets, CACM 2021, section 3: its seven parts, and its questions in short. What a card does not
know is marked as the publisher's to answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..card.model import Card
from ..card.opening import opening
from ..card.parameters import total_cost
from ..card.readme import contents, mechanism
from ..card.statements import named
from .publisher import Publisher

UNKNOWN = "*The card does not say; the publisher can.*"
_Answer = tuple[str, str]
"""A question and its answer."""


def render(card: Card, publisher: Publisher) -> str:
    """Return the datasheet."""
    parts = {
        "Motivation": _motivation(publisher),
        "Composition": _composition(card),
        "Collection process": _collection(card),
        "Preprocessing, cleaning, labelling": _preprocessing(card),
        "Uses": _uses(card, publisher),
        "Distribution": _distribution(card),
        "Maintenance": _maintenance(),
    }
    lines = [f"# Datasheet: {card.release}\n"]
    for title, answers in parts.items():
        lines.append(f"## {title}\n")
        lines += [f"**{question}** {answer}\n" for question, answer in answers]
    return "\n".join(lines)


def _motivation(publisher: Publisher) -> Iterator[_Answer]:
    yield "For what purpose was it created?", publisher.use or UNKNOWN
    yield "Who created it, and on whose behalf?", publisher.curator or UNKNOWN
    yield "Who paid for it?", UNKNOWN


def _composition(card: Card) -> Iterator[_Answer]:
    files = "; ".join(f"`{name}`: {meaning}" for name, meaning in contents(card))
    yield "What do the instances represent?", f"{files}."
    rows = sum(file.rows for file in card.files if file.path.startswith("data/"))
    yield (
        "How many are there?",
        f"{f'{rows:,} rows, of ' if rows else 'One table for '}{card.counts.documents:,} documents "
        f"({card.counts.rejected:,} unreadable records were rejected)."
        if card.counts
        else "The card does not state how many documents there were, since that would tell whether "
        "one of them is there.",
    )
    yield (
        "Is it a sample?",
        "It was made of every readable record of its input. Whether that is a sample of something "
        "larger, the publisher can say.",
    )
    copied = named(card.columns, card.id_column, "`")
    yield "Is there a label or target?", f"Columns are copied: {copied}." if copied else "None."
    yield (
        "Is information missing, and are there errors, noise or redundancies?",
        f"Noise was added on purpose: {total_cost(card.budget.total)}. What the mechanism does not "
        "know of a document, and unreadable records, are missing.",
    )
    artefacts = "; ".join(
        f"{one.name} (`{one.uri}`, {one.provenance}, sha256 `{one.digest}`)"
        for one in card.artefacts
    )
    yield (
        "Is it self-contained, or does it rely on other resources?",
        f"Self-contained. It was made with: {artefacts}." if artefacts else "Self-contained.",
    )
    limits = "\n".join(f"- {line}" for line in card.guarantee.not_protected)
    yield (
        "Does it hold data that might be confidential, or identify people?",
        f"It was made from private documents, under {card.guarantee.definition}. "
        f"{card.guarantee.statement} Not protected:\n\n{limits}",
    )
    yield "Might it offend, or does it name subpopulations?", UNKNOWN


def _collection(card: Card) -> Iterator[_Answer]:
    yield "How was the data acquired, by whom, and over what time?", UNKNOWN
    yield "Were there ethical reviews, notice and consent?", UNKNOWN
    yield (
        "Was the effect on data subjects analysed?",
        f"The guarantee is the analysis that the card has. Its unit is {card.guarantee.unit}; "
        f"neighbours are {card.guarantee.adjacency}.",
    )


def _preprocessing(card: Card) -> Iterator[_Answer]:
    shown = ", ".join(f"{key}: {value}" for key, value in mechanism(card))
    yield "What was done to the data?", f"`{shown}`"
    yield "Is the raw data kept?", "Not in this release. " + UNKNOWN
    yield (
        "Is the software available?",
        f"quietcorpus {card.software['quietcorpus']}; all versions are in `release.json`.",
    )


def _uses(card: Card, publisher: Publisher) -> Iterator[_Answer]:
    yield "What is it for?", publisher.use or UNKNOWN
    yield "Has it been used already?", UNKNOWN
    yield (
        "What may affect future uses?",
        "The noise. No figure of utility stands on the card, since it would come from the private "
        "documents.",
    )
    yield (
        "What should it not be used for?",
        "To learn what a single document says: its noise is meant to prevent that. "
        + " ".join(card.mechanism.notes),
    )
    lines = opening(card.mechanism)
    if lines:
        yield "How is it opened?", f"\n\n{lines}"


def _distribution(card: Card) -> Iterator[_Answer]:
    yield "To whom is it distributed, and how?", UNKNOWN
    yield "When?", f"It was begun on {card.created}."
    yield "Under what licence or terms?", UNKNOWN
    yield (
        "How is it told from a copy that was changed?",
        "`quietcorpus verify` compares every file with the digests of `release.json`.",
    )


def _maintenance() -> Iterator[_Answer]:
    yield "Who supports it, and how can they be reached?", UNKNOWN
    yield (
        "Will it be updated, and are older versions kept?",
        "A release is never changed; another one costs budget of its own.",
    )
    yield (
        "Can people have their data removed?",
        "Not from a release that was handed out. " + UNKNOWN,
    )
    yield "Can others build on it?", "What is computed from the release alone costs nothing more."
