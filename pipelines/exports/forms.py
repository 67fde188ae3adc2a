"""The forms in which a card can be exported, those in Markdown among them.

A datasheet of a release, in Markdown.

Source: Gebru, Morgenstern, Vecchione, Wortman Vaughan, Wallach, Daume and Crawford, Datasheets for
Datasets, CACM 2021, section 3: its seven parts, and its questions in short. What a card does not
know is marked as the publisher's to answer.

The pyramid of NIST SP 800-226, component by component, in Markdown.

Source: Near, Darais, Lefkovitz and Howarth, Guidelines for Evaluating Differential Privacy
Guarantees, NIST SP 800-226, 2025, figure 1. Each component is protected only as well as those below
it; they are listed from the top. Paths are those of this software's source.

The forms in which a card can be exported, and what only its publisher knows.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from .. import registry
from ..card.model import Card
from ..card.parameters import UserParameters, total_cost
from ..card.readme import contents, mechanism, opening
from ..card.statements import named
from ..card.verify import check_card, read_card
from ..storage.places import absolute
from .metadata import Publisher, croissant, deployment

UNKNOWN = "*The card does not say; the publisher can.*"
_Answer = tuple[str, str]
"""A question and its answer."""


def datasheet(card: Card, publisher: Publisher) -> str:
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


_NOT = "not covered"
_PART = "in part"
_YES = "answered"
_PACKAGE = "quietcorpus."


class Component(NamedTuple):
    """A component of the pyramid, as far as the card answers for it.

    Attributes:
        name: as the figure has it.
        section: of the guidelines.
        status: `answered`, `in part` or `not covered`.
        answer: the statement of the card and of this software.
        evidence: paths of files and tests, keys of release.json, and commands.
    """

    name: str
    section: str
    status: str
    answer: str
    evidence: tuple[str, ...] = ()


def pyramid(card: Card, _: Publisher) -> str:
    """Return the components as a page."""
    parts = [
        f"# NIST SP 800-226: {card.release}\n",
        "What this release's card, and the software that made it, answer of the components of a "
        "guarantee (figure 1 of the guidelines), from the top to the bottom. Each rests on those "
        "below it. Evidence names keys of `release.json`, files and tests of quietcorpus "
        f"{card.software['quietcorpus']}, and commands. The card does not say whether a command "
        "was run, on this release or at all.\n",
    ]
    for one in components(card):
        parts.append(f"## {one.name} (section {one.section}): {one.status}\n")
        parts.append(one.answer + "\n")
        if one.evidence:
            parts.append("".join(f"- `{item}`\n" for item in one.evidence))
    return "\n".join(parts)


def components(card: Card) -> Iterator[Component]:
    """Yield the eleven components."""
    yield from _guarantee(card)
    yield from _algorithms(card)
    yield from _deployment(card)


def _guarantee(card: Card) -> Iterator[Component]:
    inherited = "".join(
        f" On top comes what the {one['artefact']} cost its own data: {one.get('statement')}"
        for one in card.budget.inherited
    )
    yield Component(
        "ε",
        "2.2",
        _YES,
        f"{card.guarantee.definition}: {total_cost(card.budget.total)}. {card.guarantee.statement}"
        f"{inherited}",
        (
            "guarantee.parameters",
            "budget",
            "quietcorpus verify",
            "mechanisms/accounting/guarantees.py",
            "tests/mechanisms/accounting/test_guarantees.py",
            "pipelines/card/verify.py",
            "tests/pipelines/card/test_verify.py",
        ),
    )
    person = (
        ""
        if isinstance(card.guarantee.parameters, UserParameters)
        else " This is not all that one person wrote: the guidelines warn of units below a person."
    )
    yield Component(
        "Unit of privacy",
        "2.4",
        _YES,
        f"{card.guarantee.unit}. Neighbours are {card.guarantee.adjacency}.{person}",
        ("guarantee.unit", "guarantee.adjacency", "docs/explanation/privacy.md"),
    )


def _algorithms(card: Card) -> Iterator[Component]:
    yield Component(
        "Utility",
        "3.2",
        _NOT,
        "The card holds no figure of utility, since such a figure is computed from the private "
        "documents. `quietcorpus evaluate` measures it in a report that stays with the publisher.",
        ("quietcorpus evaluate",),
    )
    yield Component("Bias", "3.3", _NOT, "Nothing here looks at whom noise harms more.")
    proofs = tuple(
        path
        for name in card.mechanism.proofs
        for path in (f"mechanisms/{name}.py", f"tests/mechanisms/{_test_of(name)}")
    )
    stages = ", ".join(one.stage for one in card.budget.stages)
    yield Component(
        "Algorithms and correctness",
        "3.1",
        _YES if proofs else _NOT,
        f"The stages that spend the budget: {stages}. Each mechanism's docstring states what is "
        "proved of it, and each of these sentences has a test; audits compare the laws of outputs "
        "with what is stated, and find the faults that are planted."
        if proofs
        else "This kind of release names no mechanism of this software.",
        (
            *proofs,
            *((*_audit(card), "tests/statistical/test_planted_faults.py") if proofs else ()),
        ),
    )


def _test_of(module: str) -> str:
    folder, name = posixpath.split(module)
    return f"{folder}/test_{name}.py"


def _audit(card: Card) -> tuple[str, ...]:
    """Return the command and the module that audit releases of the card's kind."""
    module = registry.place(card.mechanism.kind, "audits").partition(":")[0]
    if not module.startswith(_PACKAGE):
        return ("quietcorpus audit",)
    path = module.removeprefix(_PACKAGE).replace(".", "/")
    return "quietcorpus audit", f"{path}.py", "docs/measurements/audits.md"


def _deployment(card: Card) -> Iterator[Component]:
    yield Component(
        "Side channels",
        "4.3",
        _PART,
        "Noise on whole numbers is drawn exactly, without floating-point gaps; which noise is of "
        "real numbers, and what is proved of it, is in the explanation of privacy. It is a keyed "
        "function of its input, so that a repeated run draws nothing anew. Texts are kept out of "
        "errors, logs and metrics. How long a run takes, and what its machines reveal, is not "
        "covered.",
        (
            "mechanisms/noise/exact.py",
            "tests/mechanisms/noise/test_exact.py",
            "mechanisms/keystream.py",
            "tests/mechanisms/test_keystream.py",
            "transforms/errors.py",
            "tests/end_to_end/test_canary.py",
            "docs/explanation/privacy.md",
        ),
    )
    yield Component(
        "Query model",
        "4.1",
        _YES,
        "Not interactive: this is one published release. "
        + (
            f"A ledger of the corpus counts it, as record {card.ledger.reservation}."
            if card.ledger
            else "No ledger counts it, so nothing here bounds what other releases add."
        ),
        ("ledger", "quietcorpus ledger verify", "docs/guides/ledger.md")
        if card.ledger
        else ("docs/guides/ledger.md",),
    )
    yield Component(
        "Threat model",
        "4.2",
        _YES,
        "Central: the publisher sees the documents and is trusted, and so are the machines of "
        "the pipeline. A reader of the release may know everything else but the master key. "
        "Not protected:\n\n" + "\n".join(f"- {line}" for line in card.guarantee.not_protected),
        ("guarantee.not_protected", "docs/explanation/privacy.md"),
    )
    yield Component(
        "Security",
        "4.4",
        _NOT,
        "How the documents and the master key are kept is the publisher's to answer. The software "
        "reads the key from the environment, a file or a secret manager, and writes it nowhere.",
        ("pipelines/environment/keys.py", "tests/pipelines/environment/test_keys.py"),
    )
    yield Component(
        "Access control",
        "4.4",
        _NOT,
        "Who may read the documents is the publisher's to answer.",
        ("docs/guides/permissions.md",),
    )
    yield Component(
        "Data collection exposure",
        "4.5",
        _NOT,
        "How the documents were collected, and who holds copies, is the publisher's to answer.",
    )


FORMS: Mapping[str, Callable[[Card, Publisher], str]] = {
    "registry": deployment,
    "croissant": croissant,
    "sp800-226": pyramid,
    "datasheet": datasheet,
}


def export(path: str, form: str, publisher: Publisher) -> str:
    """Return the card of a release in one of `FORMS`; nothing but release.json is read.

    Raises InputError if there is no card, if its budget and its guarantee do not agree, or if the
    form needs something of the publisher's that is missing.
    """
    output = absolute(path)
    card = read_card(output)
    check_card(output, card)
    return FORMS[form](card, publisher)
