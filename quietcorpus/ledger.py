"""What the releases of one corpus cost together, and the cap on it: `quietcorpus ledger`.

Places are folders, or prefixes of an object store with conditional writes (s3://, gs://, azfs://).
Every function raises `InputError` for anything that a person can mend, and `Unavailable` where
another try may help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import fspath
from typing import TYPE_CHECKING, Any

from quietcorpus.places import Place, absolute, stores

if TYPE_CHECKING:
    from quietcorpus.pipelines.ledger.book import Ledger
    from quietcorpus.pipelines.ledger.check import Finding


def init(place: Place, caps: Place | Mapping[str, Any]) -> dict[str, Any]:
    """Open a ledger with its caps, which stand from then on; returns its accounts.

    Args:
        place: where it will be.
        caps: a YAML file, or its content: `corpus`, and a list of `caps`.
    """
    from quietcorpus.pipelines.ledger.book import Ledger
    from quietcorpus.pipelines.ledger.caps import as_terms
    from quietcorpus.pipelines.ledger.tables import accounts

    with stores():
        terms = as_terms(caps)
        return accounts(Ledger.init(_answering(place, "write"), terms))


def show(place: Place) -> dict[str, Any]:
    """The accounts of a ledger: what is used, what is left, and by which releases."""
    from quietcorpus.pipelines.ledger.tables import accounts

    with stores():
        return accounts(_opened(place))


def history(place: Place) -> list[dict[str, Any]]:
    """Every record of a ledger, in order."""
    from quietcorpus.pipelines.ledger.tables import history as events

    with stores():
        return events(_opened(place))


def verify(place: Place) -> list[Finding]:
    """Check every record, their chain and seals; returns how each release's card compares.

    Raises:
        InputError: a record is not as it was left.
    """
    from quietcorpus.pipelines.ledger.check import findings

    with stores():
        opened = _opened(place)
        opened.check_identifiers()
        return findings(opened)


def plan(specs: Sequence[Place]) -> list[dict[str, Any]]:
    """What the releases of some specs, in this order, would cost their ledgers.

    Nothing is reserved. `refused` of a release says why it would be.
    """
    from quietcorpus.pipelines.ledger.plan import plan as foresee

    with stores():
        return foresee([fspath(spec) for spec in specs])


def release_reservation(place: Place, release: str, reason: str) -> None:
    """Give back what a release has reserved, if nothing of it was published.

    Args:
        place: of the ledger.
        release: its id.
        reason: stays in the ledger.
    """
    with stores():
        _opened(place, "write").cancel(release, reason)


def _opened(place: Place, verb: str = "list") -> Ledger:
    from quietcorpus.pipelines.ledger.book import Ledger

    return Ledger.open(_answering(place, verb))


def _answering(place: Place, verb: str) -> str:
    """A ledger's place, whose store answers; raises InputError otherwise."""
    from quietcorpus.pipelines.storage import reachable
    from quietcorpus.pipelines.storage.stores import is_supported

    uri = absolute(place)
    if is_supported(uri):
        reachable.require([reachable.Need("ledger", f"{uri}/record", verb)])
    return uri
