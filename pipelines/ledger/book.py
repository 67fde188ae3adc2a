"""A ledger, in which budgets are reserved, committed and given back."""

from __future__ import annotations

from dataclasses import replace

from quietcorpus.transforms.errors import InputError, StageError, shown

from ..card.model import Card
from ..card.parameters import parameters
from ..environment.keys import LEDGER_KEY, configured_key
from ..storage import files as storage
from ..storage import layout
from ..storage.places import inside, root
from . import refusals
from .caps import Cost, Terms
from .chain import Chain, Damaged, Draft
from .kept_head import KeptHead
from .key_pinning import Signatures, Trust
from .records import (
    Adoption,
    AnyRecord,
    Cancellation,
    Charged,
    Commit,
    Noise,
    Partition,
    Refusal,
    Reservation,
    Sort,
    digest,
    new_nonce,
    version_of,
)
from .refusals import Partitions, Request
from .state import State

_ANY_KEY = "0" * 16  # in a plan, before any partition has a key


class Ledger:
    """The budgets at a place, as its records have them.

    Every method raises InputError for what a person can fix, which includes a damaged ledger, and
    Unavailable if other writers never pause. Nothing is written to a ledger that is not in order.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._chain = Chain(uri)
        self._partitions = Partitions(uri)
        self._foreseen = 0

    @property
    def state(self) -> State:
        """Return the state after all records that are read so far."""
        return self._chain.state

    @property
    def records(self) -> list[AnyRecord]:
        """Return the records that are read so far, in order."""
        return self._chain.records

    @property
    def signatures(self) -> Signatures:
        """Return the keys by which the records are signed."""
        return self._chain.signatures

    @property
    def head(self) -> str:
        """Return the number and the digest of the last record, with a colon between."""
        return self._chain.head

    @property
    def opening(self) -> str:
        """Return the SHA-256 of the first record, which no other ledger has."""
        return self._chain.opening

    def has(self, head: str) -> bool:
        """Return whether a record of this number and SHA-256 is there, or adopted."""
        return self._chain.has(head)

    @classmethod
    def open(cls, uri: str, trust: Trust | None = None) -> Ledger:
        """Open an existing ledger; without `trust`, by the keys that the environment names."""
        ledger = cls(uri)
        ledger._chain.load(trust)
        return ledger

    @classmethod
    def init(cls, uri: str, terms: Terms) -> Ledger:
        """Create a ledger, which is signed if the environment names its key."""
        if inside(uri, root(terms.corpus)) or inside(root(terms.corpus), uri):
            raise InputError(
                f"ledger: {uri} overlaps with the corpus {terms.corpus}; keep them apart"
            )
        signing = configured_key(LEDGER_KEY)
        key = signing.public if signing else None
        Trust.configured(begins=True).check_new(uri, key)
        if kept := KeptHead.configured():
            kept.require_none(uri)
        storage.probe("ledger", uri)
        ledger = cls(uri)
        ledger._chain.read()
        draft = {
            "schema_version": version_of(terms.caps, key),
            "record": "opening",
            "corpus": terms.corpus,
            "caps": terms.model_dump()["caps"],
            "key": key,
        }

        def opened(state: State) -> Draft:
            if state.opening is not None:
                raise InputError(
                    f"ledger: {uri} holds a ledger already; its caps stand, unless it is signed: "
                    "see `quietcorpus ledger change-caps`"
                )
            return draft

        ledger._chain.append(opened, signing)
        return ledger

    def require_key(self) -> None:
        """Raise InputError if the ledger is signed and the environment lacks the key in force."""
        self._chain.require_key()

    def reserve(self, request: Request) -> Reservation:
        """Reserve what a release costs, or return the reservation that the same run has made."""

        def decide(state: State) -> Draft | Reservation:
            found = state.of_release(request.release)
            return self._asked(request) if found is None else self._resumed(state, found, request)

        found = self._chain.append(decide)
        assert isinstance(found, Reservation)
        return found

    def foresee(self, request: Request) -> list[Charged]:
        """Return what a release would be charged, and count it in this object; write nothing.

        Raises InputError if the release would be refused. The master key need not be configured: it
        is assumed to be the key of the partitions so far.
        """
        return self._counted(self._keyed(request))

    def admit(self, request: Request, identity: str) -> list[Charged]:
        """Return what `reserve` would charge a release, or has charged it; write nothing.

        Like `foresee`, but with the master key, so that it also tells whether this run may go on
        with the reservation of its release. Raises InputError as `reserve` and `check_identity` do.
        """
        self.require_key()
        found = self.state.of_release(request.release)
        if found is None:
            return self._counted(request)
        self.check_identity(self._resumed(self.state, found, request), identity)
        return found.charges

    def _counted(self, request: Request) -> list[Charged]:
        """Count a release in this object, and return what it would be charged."""
        self._foreseen += 1
        number = len(self.records) + self._foreseen
        record = self._chain.complete(self._asked(request) | {"number": number})
        assert isinstance(record, Reservation)
        self.state.add(record)
        return record.charges

    def _keyed(self, request: Request) -> Request:
        """Return the request with the key of the partitions so far, if its ids are compared."""
        part = request.partition
        if part is None or part.sort.disjoint != "compared":
            return request
        key = next((sort.key for sort in self.state.partitioned if sort.key), _ANY_KEY)
        return replace(request, partition=replace(part, sort=replace(part.sort, key=key)))

    def _asked(self, request: Request) -> Draft:
        """Draft a reservation; raises InputError if there is no room for it."""
        self._check_corpus(request)
        part, noise = request.partition, request.cost.noise
        charges = self.state.charges(request.cost, part)
        return {
            "record": "reservation",
            "release": request.release,
            "run": request.run,
            "output": request.output,
            "partition": part and part.name,
            "guarantee": parameters(request.cost.guarantee).model_dump(),
            "whose": request.cost.unit_scope,
            "compared": part and part.sort.key,
            "disjoint": part and part.sort.disjoint,
            "identifier": part and part.sort.column,
            "noise": noise and Noise.of(noise),
            "charges": [charged.model_dump() for charged in charges],
        }

    def _check_corpus(self, request: Request) -> None:
        """Refuse a release of another corpus."""
        assert self.state.opening is not None
        corpus = self.state.opening.corpus
        if not inside(root(request.corpus), root(corpus)):
            raise InputError(
                f"ledger: {self.uri} counts the corpus {corpus}, and input.path {request.corpus} "
                "does not lie in it; name the ledger of that corpus"
            )

    def compare(self, reservation: Reservation, identifiers: bytes) -> None:
        """Keep the ids of a partition, before any noise on its documents is drawn.

        A run whose failure reveals its noise then reveals it about no document in another
        partition. Does nothing for a reservation that is spent, or whose ids are kept already.

        Args:
            reservation: the record, of a partition that is compared by its ids.
            identifiers: keyed digests of its documents' ids; InputError is raised if another
                partition has one of them.
        """
        if reservation.disjoint != "compared":
            raise StageError(f"ledger: {reservation.release} has no ids to compare")
        number, compared = reservation.number, set[int]()

        def decide(state: State) -> Draft | Reservation:
            found = self._held(state, reservation)
            if number in state.documents or state.is_spent(number):
                return found
            ids = self._keep(state, reservation, identifiers, compared)
            return {"record": "comparison", "reservation": number, "identifiers_sha256": ids}

        self._chain.append(decide)

    def commit(
        self,
        reservation: Reservation,
        identity: str,
        card_sha256: str,
        identifiers: bytes | None = None,
    ) -> Commit:
        """Spend a reservation; what is published from now on is accounted for.

        Args:
            reservation: the record.
            identity: a keyed digest of all that the release's bytes depend on.
            card_sha256: the SHA-256 of its release.json.
            identifiers: keyed digests of its documents' ids, for a partition that is compared by
                them; the commit is refused if another partition has one of them.

        Raises StageError if `identifiers` are missing where they are needed, or given elsewhere.
        """
        if (identifiers is not None) != (reservation.disjoint == "compared"):
            raise StageError(
                f"ledger: the ids of {reservation.release} are not there as its reservation says; "
                "run again"
            )
        # `decide` may run several times: `compared` holds the partitions it need not read again.
        number, compared = reservation.number, set[int]()

        def decide(state: State) -> Draft | Commit | Adoption:
            self._held(state, reservation)
            told = state.refusals.get(number)
            if told is not None and told.identity != identity:
                raise InputError(refusals.told(reservation.release))
            before = state.commits.get(number)
            if before is None:
                ids = None
                if identifiers is not None:
                    ids = self._keep(state, reservation, identifiers, compared)
                return {
                    "record": "commit",
                    "reservation": number,
                    "identity": identity,
                    "card_sha256": card_sha256,
                    "identifiers_sha256": ids,
                }
            if (before.identity, before.card_sha256) != (identity, card_sha256):
                raise InputError(refusals.other_bytes(reservation.release))
            return before

        found = self._chain.append(decide)
        assert isinstance(found, Commit)
        return found

    def refuse(
        self, reservation: Reservation, identity: str, *, compared: bool = True
    ) -> Refusal | Commit | Adoption:
        """Spend a reservation without a release, as its noisy outcome is about to be told.

        The same run may still commit it. Returns the commit if there is one already.

        Args:
            reservation: the record.
            identity: a keyed digest of all that its noise depends on.
            compared: whether it tells of no other documents than those whose ids were compared.
        """
        number, documents = reservation.number, None if compared else "unknown"

        def decide(state: State) -> Draft | Refusal | Commit | Adoption:
            before = state.commits.get(number) or state.refusals.get(number)
            if before is not None and before.identity == identity:
                return before
            if number not in state.reservations or before is not None:
                raise InputError(f"ledger: {reservation.release} has no reservation of this run")
            return {
                "record": "refusal",
                "reservation": number,
                "identity": identity,
                "documents": documents,
            }

        found = self._chain.append(decide)
        assert isinstance(found, Refusal | Commit | Adoption)
        return found

    def check_identity(self, reservation: Reservation, identity: str) -> None:
        """Refuse a run whose bytes would differ from the committed ones, or its noise."""
        committed = self.state.commits.get(reservation.number)
        if committed is not None and committed.identity != identity:
            raise InputError(refusals.other_bytes(reservation.release))
        refused = self.state.refusals.get(reservation.number)
        if refused is not None and refused.identity != identity:
            raise InputError(refusals.told(reservation.release))

    def cancel(self, release: str, reason: str) -> Cancellation:
        """Give a reservation back, if nothing was published."""
        if not reason.strip():
            raise InputError("reason: is empty; say why the budget may be given back")

        def decide(state: State) -> Draft:
            found = state.of_release(release)
            if found is None:
                raise InputError(f"ledger: there is no reservation of a release {shown(release)}")
            if found.number in state.commits:
                raise InputError(
                    f"ledger: {release} is committed: it was published, or may have been, and its "
                    "budget is spent"
                )
            if found.number in state.refusals:
                raise InputError(refusals.told(release))
            if storage.exists(f"{found.output}/{layout.CARD}"):
                raise InputError(
                    f"ledger: {found.output} holds a release; what was published is spent"
                )
            return {"record": "cancellation", "reservation": found.number, "reason": reason}

        found = self._chain.append(decide)
        assert isinstance(found, Cancellation)
        return found

    def adopt(self, card: Card, content: bytes, place: str, reason: str) -> Adoption:
        """Count a published release whose records the ledger has lost; its caps may be passed.

        Where ids are compared between partitions, those of the release are lost as well: it is
        charged as if its documents could be in any other.

        Args:
            card: the release's card.
            content: the bytes of its release.json.
            place: the release's place.
            reason: the reason, which the ledger keeps.
        """
        entry = card.ledger
        if entry is None or entry.opening_sha256 != self.opening:
            raise InputError(
                f"ledger: the card of {card.release} at {place} names another ledger than "
                f"{self.uri}, or none; adopt it where it belongs"
            )
        lost = f"{entry.reservation}:{entry.record_sha256}"
        noise = entry.noise.cost if entry.noise else None
        cost = Cost(card.budget.total.guarantee, entry.whose or "", noise)

        def decide(state: State) -> Draft | Adoption:
            if lost in state.adopted:
                return state.adopted[lost]
            if self.has(lost):
                raise InputError(
                    f"ledger: {self.uri} has record {entry.reservation}, which the card of "
                    f"{card.release} names; nothing is to be adopted"
                )
            part = None
            if entry.disjoint == "declared" and entry.partition is not None:
                part = Partition(entry.partition, Sort("declared"))
            return {
                "record": "adoption",
                "release": card.release,
                "run": new_nonce(),  # no run goes on with it
                "output": place,
                "partition": part and part.name,
                "disjoint": part and part.sort.disjoint,
                "guarantee": parameters(cost.guarantee).model_dump(),
                "whose": cost.unit_scope,
                "noise": noise and Noise.of(noise),
                "charges": [
                    charged.model_dump() for charged in state.charges(cost, part, capped=False)
                ],
                "lost": lost,
                "card_sha256": digest(content),
                "reason": reason,
            }

        found = self._chain.append(decide, keeps_head=False)
        assert isinstance(found, Adoption)
        return found

    def accept(self, lost: str, reason: str) -> None:
        """Go on without the records that a kept head covers, and keep the head from here on."""
        self._chain.append(
            lambda _: {"record": "restoration", "lost": lost, "reason": reason}, keeps_head=False
        )
        self._chain.keep_head(lost)

    def keep_head(self) -> None:
        """Keep the head where the environment names a place."""
        self._chain.keep_head()

    def check_identifiers(self) -> None:
        """Raise InputError unless the digests of all partitions are the committed ones."""
        try:
            for number, digest_of_ids in self.state.documents.items():
                self._partitions.read(number, digest_of_ids)
        except Damaged as error:
            raise self._chain.damage(error) from None

    def _held(self, state: State, reservation: Reservation) -> Reservation:
        """Return a reservation, or raise InputError if it was given back."""
        if reservation.number not in state.reservations:
            raise InputError(
                f"ledger: the reservation of {reservation.release} was given back meanwhile; "
                "nothing may be published"
            )
        return reservation

    def _keep(
        self, state: State, reservation: Reservation, identifiers: bytes, compared: set[int]
    ) -> str:
        """Keep ids that no other partition has, and return the SHA-256 of their digests."""
        before = state.documents.get(reservation.number)
        if before is None:
            self._refuse_shared(reservation, identifiers, compared)
        elif before != digest(identifiers):
            raise StageError(
                f"ledger: the ids of {reservation.release} are not those that were compared; run "
                "again"
            )
        return self._partitions.keep(reservation.number, identifiers)

    def _refuse_shared(
        self, reservation: Reservation, identifiers: bytes, compared: set[int]
    ) -> None:
        """Refuse documents that a release of another partition also has."""
        for number, theirs in self.state.documents.items():
            other = self.state.reservations[number]
            if number in compared or other.partition == reservation.partition:
                continue
            shared = self._partitions.shared(number, theirs, identifiers)
            if shared:
                spent = self.state.is_spent(number)
                back = "" if spent else f", or give {other.release} back if its run is dead"
                raise InputError(
                    f"ledger.partition: {shared} documents of {reservation.partition} are in "
                    f"{other.partition} as well (release {other.release}): such partitions do "
                    f"not compose in parallel; leave these documents out, or the partition{back}"
                )
            compared.add(number)

    def _resumed(self, state: State, found: Reservation, request: Request) -> Reservation:
        if isinstance(found, Adoption):
            raise InputError(refusals.adopted(found))
        mine = (request.run, request.output, request.partition, request.cost)
        if found.is_older or (found.run, found.output, found.part, found.cost) != mine:
            if found.number in state.refusals:
                raise InputError(refusals.told(request.release))
            committed = found.number in state.commits
            raise InputError(refusals.another_run(found, request, committed=committed))
        return found
