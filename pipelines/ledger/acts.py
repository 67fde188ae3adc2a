"""The acts by which a ledger's key or its caps change: visible records, of signed ledgers."""

from __future__ import annotations

from quietcorpus.transforms.errors import InputError

from ..environment.signing import LEDGER_KEY, SigningKey, configured_key
from .caps import Terms
from .chain import Chain, Draft
from .signatures import short
from .state import State
from .trust import Trust


def sign(uri: str, head: str | None = None) -> str:
    """Sign a ledger that is not signed, as it is now, by the environment's key; return its head.

    Args:
        uri: the ledger's place.
        head: the head that it must have; see `Chain.head`.
    """
    own = configured_key(LEDGER_KEY)
    if own is None:
        raise InputError(f"{LEDGER_KEY}: not set; set it to the file of the key that is to sign")
    chain = Chain(uri)
    chain.load(Trust.of_head(head))
    loaded = head or chain.head

    def decide(_: State) -> Draft:
        if chain.signatures.key is not None:
            raise InputError(
                f"ledger: {uri} is signed already, by the key {short(chain.signatures.key)}"
            )
        if chain.head != loaded:  # what came since was not looked at
            raise InputError(
                f"ledger: {uri} has records after {loaded}; verify them, and sign again"
            )
        return {"record": "key", "key": own.public}

    chain.append(decide, own)
    return chain.head


def rotate(uri: str, new: SigningKey) -> str:
    """Let another key follow the one in force, the environment's; return the ledger's head."""
    chain = Chain(uri)
    chain.load()

    def decide(_: State) -> Draft:
        if chain.signatures.key is None:
            raise InputError(f"ledger: {uri} is not signed; see `quietcorpus ledger sign`")
        if new.public in chain.signatures.since:
            raise InputError(
                f"ledger: the key {short(new.public)} is or was in force in {uri}; make a new one"
            )
        return {"record": "key", "key": new.public}

    chain.append(decide, new)
    return chain.head


def change_caps(uri: str, terms: Terms, reason: str) -> str:
    """Change caps of a signed ledger for all that is reserved from now on; return its head.

    Args:
        uri: the ledger's place.
        terms: its corpus, and the caps of all its accounts.
        reason: kept in the ledger.
    """
    if not reason.strip():
        raise InputError("reason: is empty; say why the caps change")
    chain = Chain(uri)
    chain.load()

    def decide(state: State) -> Draft:
        assert state.opening is not None
        if chain.signatures.key is None:
            raise InputError(
                f"ledger: {uri} is not signed, and the caps of such a ledger are final; see "
                "`quietcorpus ledger sign`"
            )
        if terms.corpus != state.opening.corpus:
            raise InputError(
                f"ledger: {uri} is of the corpus {state.opening.corpus}; open another ledger for "
                f"{terms.corpus}"
            )
        state.check_caps(terms.caps)
        return {"record": "caps", "caps": terms.model_dump()["caps"], "reason": reason}

    chain.append(decide)
    return chain.head
