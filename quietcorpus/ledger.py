"""The total cost of the releases of one corpus, and the caps on it: `quietcorpus ledger`.

Places are folders, or prefixes of an object store with conditional writes (s3://, gs://, azfs://).
Every function raises `InputError` for anything that a person can fix, and `Unavailable` where
another try may help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import fspath
from typing import TYPE_CHECKING, Any

from .arguments import Count, checked
from .places import Place, absolute, process_restored

if TYPE_CHECKING:
    from quietcorpus.pipelines.ledger.book import Ledger
    from quietcorpus.pipelines.ledger.check import CheckedLedger


@checked
@process_restored()
def init(place: Place, caps: Place | Mapping[str, Any]) -> dict[str, Any]:
    """Create a ledger with its caps; return its accounts.

    It is signed if QUIETCORPUS_LEDGER_KEY_FILE names its key. Otherwise its caps are final.

    Args:
        place: the place for the ledger.
        caps: a YAML file, or its content: `corpus`, and a list of `caps`.
    """
    from quietcorpus.pipelines.ledger.book import Ledger
    from quietcorpus.pipelines.ledger.caps import as_terms
    from quietcorpus.pipelines.ledger.views import accounts

    terms = as_terms(caps)
    return accounts(Ledger.init(_answering(place, "write"), terms))


@checked
@process_restored()
def show(place: Place) -> dict[str, Any]:
    """Return the accounts of a ledger: what is used, what is left, and by which releases."""
    from quietcorpus.pipelines.ledger.views import accounts

    return accounts(_opened(place))


@checked
@process_restored()
def page(place: Place) -> str:
    """Return a ledger as a self-contained HTML page: what is left, spent by which release, when.

    Equal records give equal pages.
    """
    from quietcorpus.pipelines.ledger.views import render

    return render(_opened(place))


@checked
@process_restored()
def history(place: Place) -> list[dict[str, Any]]:
    """Return every record of a ledger, in order."""
    from quietcorpus.pipelines.ledger.views import history as events

    return events(_opened(place))


@checked
@process_restored()
def verify(
    place: Place,
    *,
    public_key: Place | None = None,
    expected_head: str | None = None,
    keep_head: Place | None = None,
) -> CheckedLedger:
    """Check every record, their chain, seals and signatures, and how each release's card compares.

    Args:
        place: the ledger's place.
        public_key: a PEM file of a key that must have signed the ledger, besides those that the
            environment names.
        expected_head: the `head` that an earlier `quietcorpus ledger verify` found.
        keep_head: a file, or an object, for the head, unless a release disagrees with the ledger;
            if it holds one, that one is expected. Releases compare it: see
            QUIETCORPUS_LEDGER_HEAD_FILE.

    Raises:
        InputError: a record was changed or cut off, or the ledger is signed by another key.
    """
    from quietcorpus.pipelines.ledger.check import checked
    from quietcorpus.pipelines.ledger.kept_head import head_at
    from quietcorpus.pipelines.ledger.key_pinning import Trust

    key = None if public_key is None else fspath(public_key)
    with head_at(None if keep_head is None else fspath(keep_head)):
        trust = Trust.configured(key, expected_head, begins=keep_head is not None)
        return checked(_answering(place, "list"), trust, keeps_head=keep_head is not None)


@checked
@process_restored()
def sign(place: Place, *, expected_head: str | None = None) -> str:
    """Sign a ledger that is not signed, as it is, by the key of the environment; return its head.

    From then on, every record must be signed. Verify it first: whatever it holds is signed.

    Args:
        place: the ledger's place.
        expected_head: the `head` that `quietcorpus ledger verify` found; refused if anything came
            after it.

    Raises:
        InputError: it is signed already, or is not as expected, or no key is named.
    """
    from quietcorpus.pipelines.ledger.chain import sign as act

    return act(_answering(place, "write"), expected_head)


@checked
@process_restored()
def rotate_key(place: Place, new_key: Place) -> str:
    """Replace a ledger's key, which the environment names, by another; return the ledger's head.

    From then on, records are signed by the new key alone, and the old one never returns.

    Args:
        place: the ledger's place.
        new_key: a PEM file with the new private key.

    Raises:
        InputError: the ledger is not signed, or not by the environment's key.
    """
    from quietcorpus.pipelines.environment.keys import read_key
    from quietcorpus.pipelines.ledger.chain import rotate

    return rotate(_answering(place, "write"), read_key("new key", fspath(new_key)))


@checked
@process_restored()
def change_caps(place: Place, caps: Place | Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Change caps of a signed ledger, for what is reserved from then on; return its accounts.

    Args:
        place: the ledger's place.
        caps: a YAML file, or its content, as for `init`, with the caps of all accounts.
        reason: the reason, which the ledger keeps.

    Raises:
        InputError: the ledger is not signed, a cap is below what is used, or of a filter.
    """
    from quietcorpus.pipelines.ledger.caps import as_terms
    from quietcorpus.pipelines.ledger.chain import change_caps as act
    from quietcorpus.pipelines.ledger.views import accounts

    uri = _answering(place, "write")
    act(uri, as_terms(caps), reason)
    return accounts(_opened(place))


@checked
@process_restored()
def plan(specs: Sequence[Place]) -> list[dict[str, Any]]:
    """Compute what the releases of some specs, in this order, would cost their ledgers.

    Nothing is reserved. `refused` says why a release would be refused, and `capped` whether a cap
    is the reason.
    """
    from quietcorpus.pipelines.ledger.plans import plan as foresee

    return foresee([fspath(spec) for spec in specs])


@checked
@process_restored()
def schedule(spec: Place, releases: Count) -> dict[str, Any]:
    """Compute what each of this many releases of a spec may spend, under each kind of account.

    This writes nothing, and does not count what is spent already. For each of the `accounts` of the
    spec's ledger that count such a release, and each composition: the most that `each` may spend,
    what this many of the spec's releases cost `together`, and for how many there is `room`.

    Args:
        spec: a spec that names a ledger.
        releases: their number, 1 or more.
    """
    from quietcorpus.pipelines.ledger.plans import schedule as planned

    return planned(fspath(spec), releases)


@checked
@process_restored()
def reset_clock(place: Place, reason: str) -> str:
    """Let a ledger go on after a record that is dated in the future; return the ledger's head.

    A machine whose clock was ahead wrote that record, and no other could write until then. Compare
    this machine's clock first: the reset is dated by it.

    Args:
        place: the ledger's place.
        reason: the reason, which the ledger keeps.

    Raises:
        InputError: the last record is not ahead of this clock.
    """
    from quietcorpus.pipelines.ledger.chain import reset_clock as act

    return act(_answering(place, "write"), reason)


@checked
@process_restored()
def adopt(place: Place, cards: Sequence[Place] = (), *, reason: str) -> list[str]:
    """Count published releases whose records a ledger has lost; return the adopted release ids.

    A ledger that was restored from a backup lacks what was spent since. Its caps may be passed: no
    release is granted then. If QUIETCORPUS_LEDGER_HEAD_FILE holds a head that the ledger lacks, the
    ledger goes on without the records up to it, by a record that says so.

    Args:
        place: the ledger's place.
        cards: the places of the releases, whose cards name the lost records.
        reason: the reason, which the ledger keeps.

    Raises:
        InputError: a card is of another ledger, or nothing was lost; or a release beside others of
            the ledger is left out.
    """
    from quietcorpus.pipelines.ledger.adoption import adopt as act

    return act(_answering(place, "write"), [absolute(one) for one in cards], reason)


@checked
@process_restored()
def release_reservation(place: Place, release: str, reason: str) -> None:
    """Give back a release's reservation, if nothing of the release was published.

    Args:
        place: the ledger's place.
        release: the release's id.
        reason: the reason, which the ledger keeps.
    """
    _opened(place, "write").cancel(release, reason)


def _opened(place: Place, verb: str = "list") -> Ledger:
    from quietcorpus.pipelines.ledger.book import Ledger

    return Ledger.open(_answering(place, verb))


def _answering(place: Place, verb: str) -> str:
    """Return a ledger's place; raise InputError if its store does not answer."""
    from quietcorpus.pipelines.storage import reachable
    from quietcorpus.pipelines.storage.stores import is_supported

    uri = absolute(place)
    if is_supported(uri):
        reachable.require([reachable.Need("ledger", f"{uri}/record", verb)])
    return uri
