"""The state of a ledger: the fold of its records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from quietcorpus.mechanisms.accounting.guarantees import Guarantee, ceiling, floor
from quietcorpus.transforms.errors import CapReached, InputError

from .caps import NOTHING, Cap, Charge, Cost, MetricCap, UserCap, check_change
from .records import (
    Adoption,
    AnyRecord,
    Cancellation,
    Charged,
    ClockReset,
    Commit,
    ComparedIds,
    NewCaps,
    NewKey,
    Opening,
    Partition,
    Refusal,
    Reservation,
    Restoration,
    Sort,
    alone,
    refuse_mixture,
)


class Impossible(Exception):
    """A record that cannot stand at its place in any ledger; the message says why."""


@dataclass
class State:
    """The state that the records so far add up to.

    Attributes:
        opening: the first record; None before it.
        caps: the caps in force, one for each account.
        reservations: the reservations by number, without the cancelled ones.
        by_release: the same reservations by release.
        commits: the commits by the number of their reservation; an adoption is its own.
        adopted: the adoptions by the record that they stand for.
        refusals: the refusals by the number of their reservation.
        documents: the SHA-256 of the digests of a release's ids, which were compared with those of
            other partitions, by the number of its reservation.
        spent: the sum of the charges of all reservations, committed or not, by account and
            partition (None for releases that may be of any document).
        units: the number of reservations by account and unit.
        sorts: the number of reservations by the sort of their partition.
    """

    opening: Opening | None = None
    caps: Sequence[Cap] = ()
    reservations: dict[int, Reservation] = field(default_factory=dict)
    by_release: dict[str, Reservation] = field(default_factory=dict)
    commits: dict[int, Commit | Adoption] = field(default_factory=dict)
    adopted: dict[str, Adoption] = field(default_factory=dict)
    refusals: dict[int, Refusal] = field(default_factory=dict)
    documents: dict[int, str] = field(default_factory=dict)
    spent: dict[int, dict[str | None, Charge]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(lambda: NOTHING))
    )
    units: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    sorts: Counter[Sort] = field(default_factory=Counter)

    def add(self, record: AnyRecord) -> None:
        """Add the next record; raises Impossible if it cannot follow these."""
        if (self.opening is None) != isinstance(record, Opening):
            raise Impossible("a ledger begins with its opening, and has one")
        match record:
            case Opening():
                self.opening, self.caps = record, record.caps
            case NewKey() | Restoration() | ClockReset():
                pass  # see `Signatures`, and `KeptHead`
            case NewCaps():
                self._change_caps(record)
            case Reservation():
                self._reserve(record)
            case ComparedIds():
                self._compare(record)
            case Commit():
                self._commit(record)
            case Refusal():
                found = self._open(record.reservation)
                self.refusals[record.reservation] = record
                if self._is_unknown(found) or record.documents == "unknown":
                    self._move(found, alone(found.part), None)
            case Cancellation():
                found = self._open(record.reservation)
                del self.reservations[record.reservation], self.by_release[found.release]
                self.documents.pop(record.reservation, None)
                for charged in found.charges:
                    self.spent[charged.account][alone(found.part)] -= charged.charge
                    self.units[charged.account][found.whose] -= 1
                if found.part is not None:
                    self.sorts[found.part.sort] -= 1

    def check_caps(self, caps: Sequence[Cap]) -> None:
        """Raise InputError for caps that may not replace those in force."""
        check_change(self.caps, caps, [self.used(account) for account in range(len(self.caps))])

    def of_release(self, release: str) -> Reservation | None:
        """Return the reservation of a release, committed or not; None if there is none."""
        return self.by_release.get(release)

    def is_spent(self, number: int) -> bool:
        """Return whether a reservation was committed, or refused on its noisy outcome."""
        return number in self.commits or number in self.refusals

    @property
    def partitioned(self) -> list[Sort]:
        """Return the sort of the partitions; all have the same one, so the list has one at most."""
        return [sort for sort, count in self.sorts.items() if count]

    def used(
        self, account: int, more: Charge = NOTHING, partition: Partition | None = None
    ) -> Charge:
        """Return what an account comes to with `more` for a partition.

        Partitions that are known to have no document in common do not pay for each other: only the
        most expensive one counts (parallel composition), besides charges that may be of any
        document.
        """
        parts = dict(self.spent[account])
        parts[alone(partition)] = parts.get(alone(partition), NOTHING) + more
        everywhere = parts.pop(None, NOTHING)
        return everywhere + Charge(
            max((one.epsilon for one in parts.values()), default=NOTHING.epsilon),
            max((one.delta for one in parts.values()), default=NOTHING.delta),
            rho=max((one.rho for one in parts.values()), default=NOTHING.rho),
        )

    def stated(self, account: int) -> Charge:
        """Return the epsilon and delta that an account has come to.

        A filter's theorem needs that its cap was never passed. Where it was (see `add`), the sum of
        all that releases cost as they are is returned; no (epsilon, delta) is promised any more.
        """
        cap, used = self.caps[account], self.used(account)
        if cap.rule is None or not used.passes(cap.most):
            return cap.stated(used)
        plain = cap.model_copy(update={"composition": "basic"})
        found = (plain.charge(one.cost) for one in self._charged(account))
        return sum((charge for charge in found if charge), NOTHING)

    def counts_noise(self, guarantee: Guarantee) -> bool:
        """Return whether an account under a filter is charged for the noise of such a release."""
        plain = Cost(guarantee)
        return any(cap.rule and cap.charge(plain) is not None for cap in self.caps)

    def charges(
        self, cost: Cost, partition: Partition | None, *, capped: bool = True
    ) -> list[Charged]:
        """Return what a release would be charged; raises InputError if it would be refused.

        Where `capped`, every account of its definition must have room for it, or CapReached is
        raised.
        """
        if partition is not None:
            refuse_mixture(partition, self.partitioned)
        found = [(account, cap.charge(cost)) for account, cap in enumerate(self.caps)]
        charges = [Charged.of(account, charge) for account, charge in found if charge is not None]
        if not charges:
            raise InputError(
                f"ledger: it has no account for {_described(cost)}; its accounts are "
                f"{'; '.join(cap.title for cap in self.caps)}"
            )
        for charged in charges:
            self._check_unit(charged, cost, partition)
            if capped:
                self._check_room(charged, partition)
        return charges

    def spend(
        self, charges: Sequence[Charged], partition: Partition | None, unit_scope: str = ""
    ) -> None:
        """Add charges to their accounts."""
        for charged in charges:
            self.spent[charged.account][alone(partition)] += charged.charge
            self.units[charged.account][unit_scope] += 1
        if partition is not None:
            self.sorts[partition.sort] += 1

    def _check_unit(self, charged: Charged, cost: Cost, partition: Partition | None) -> None:
        cap, account = self.caps[charged.account], charged.account
        if isinstance(cap, UserCap) and partition is not None:
            raise InputError(
                "ledger.partition: a user may have documents in several partitions, so that user-"
                "level privacy adds up over them; leave it out"
            )
        if not isinstance(cap, MetricCap):
            others = {scope for scope, count in self.units[account].items() if count}
            others -= {cost.unit_scope}
            if others:
                raise InputError(
                    f"ledger: {cap.title}: its releases are about {', '.join(sorted(others))}, and "
                    f"this one is about {cost.unit_scope}; these do not add: open another ledger"
                )

    def _check_room(self, charged: Charged, partition: Partition | None) -> None:
        cap = self.caps[charged.account]
        used = self.used(charged.account, charged.charge, partition)
        name = used.passes(cap.most)
        if name is not None:
            raise CapReached(self._refusal(name, charged, partition))

    def _charged(self, account: int) -> list[Reservation]:
        """Return the reservations that were charged to an account."""
        return [
            one
            for one in self.reservations.values()
            if any(charged.account == account for charged in one.charges)
        ]

    def _refusal(self, name: str, charged: Charged, partition: Partition | None) -> str:
        cap = self.caps[charged.account]
        most, asked = getattr(cap.most, name), getattr(charged.charge, name)
        used = getattr(self.used(charged.account, NOTHING, partition), name)
        users = [one.release for one in self._charged(charged.account)]
        shown = ", ".join(users[-5:]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
        by = f" (by {charged.theorem})" if charged.theorem else ""
        return (
            f"ledger: {cap.title}: {name} {ceiling(asked)}{by} would pass the cap of "
            f"{floor(most)}: {ceiling(used)} is used"
            f"{f', by {shown}' if users else ''}; ask for less, or end the schedule"
        )

    def _reserve(self, record: Reservation) -> None:
        adopted = record.lost if isinstance(record, Adoption) else None
        if adopted in self.adopted:
            raise Impossible(f"record {adopted} is adopted already")
        if adopted is None and self.of_release(record.release) is not None:
            raise Impossible(f"release {record.release} is reserved already")
        try:
            # Older records did not add up partitions without ids, and so may pass the cap.
            capped = not record.is_older and adopted is None
            charges = self.charges(record.cost, record.part, capped=capped)
        except InputError as error:
            raise Impossible(str(error)) from None
        if charges != record.charges:
            raise Impossible("its charges are not what its guarantee costs")
        self.reservations[record.number] = record
        self.by_release.setdefault(record.release, record)
        if isinstance(record, Adoption):
            self.commits[record.number] = self.adopted[record.lost] = record
        self.spend(charges, record.part, record.whose)

    def _change_caps(self, record: NewCaps) -> None:
        try:
            self.check_caps(record.caps)
        except InputError as error:
            raise Impossible(str(error)) from None
        self.caps = record.caps

    def _compare(self, record: ComparedIds) -> None:
        number = record.reservation
        if self._open(number).disjoint != "compared" or number in self.documents:
            raise Impossible("its reservation has no ids to compare, or they are compared already")
        self.documents[number] = record.identifiers_sha256

    def _commit(self, record: Commit) -> None:
        number, ids = record.reservation, record.identifiers_sha256
        found = self._open(number, record.identity)
        if found.disjoint == "compared" and ids is None:
            raise Impossible("it keeps no ids, by which its partition is compared")
        if self.documents.get(number, ids) != ids:
            raise Impossible("its ids are not those that were compared")
        told = self.refusals.get(number)
        if told and told.documents is None and self._is_unknown(found):
            self._move(found, None, alone(found.part))
        if ids is not None:
            self.documents[number] = ids
        self.commits[number] = record

    def _is_unknown(self, found: Reservation) -> bool:
        """Return whether a release belongs to a partition whose ids were not compared yet."""
        return found.disjoint == "compared" and found.number not in self.documents

    def _move(self, found: Reservation, before: str | None, after: str | None) -> None:
        """Charge a reservation to `after` in place of `before`; None stands for any document."""
        for charged in found.charges:
            self.spent[charged.account][before] -= charged.charge
            self.spent[charged.account][after] += charged.charge

    def _open(self, number: int, identity: str | None = None) -> Reservation:
        """Return an open reservation, or one that was refused to the run of this identity."""
        found, told = self.reservations.get(number), self.refusals.get(number)
        another = told is not None and told.identity != identity
        if found is None or number in self.commits or another:
            raise Impossible(f"record {number} is not an open reservation")
        return found


def _described(cost: Cost) -> str:
    """Describe a guarantee's kind in words."""
    guarantee = cost.guarantee
    details = [getattr(guarantee, "metric", ""), cost.unit_scope]
    said = ", ".join(detail for detail in details if detail)
    return f"{guarantee.definition}{f' ({said})' if said else ''}"
