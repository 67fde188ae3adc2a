"""The pyramid of NIST SP 800-226, component by component, in Markdown.

Source: Near, Darais, Lefkovitz and Howarth, Guidelines for Evaluating Differential Privacy
Guarantees, NIST SP 800-226, 2025, figure 1. Each component is protected only as well as those below
it; they are listed from the top. Paths are those of this software's source.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from .. import registry
from ..card.model import Card
from ..card.parameters import UserParameters, total_cost
from .publisher import Publisher

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


def render(card: Card, _: Publisher) -> str:
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
