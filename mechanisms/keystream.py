"""The keyed stream: every random bit that a mechanism uses, as a function of its input.

Noise is a pseudo-random function (PRF) of everything that determines a mechanism's output law:
the release key, which is bound to the corpus, the stage with its parameters, the source position
and the input itself. A retried bundle therefore repeats its bits and spends nothing, while two
different inputs, two corpora, or one input under two parameter sets, never share a bit. (Rows of a
pipeline of one's own have no place in a corpus: equal ids with equal texts under one release id are
one input there.) The guarantees that stand on this stream are computational: they hold for an
adversary who cannot break AES-256 or keyed BLAKE2b.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from quietcorpus.compiled import compiled

from .encoding import Value, encode

KEY_BYTES = 32
BLOCK_BYTES = 16
ADDRESS_BYTES = 16

_LANE_SHIFT = np.uint64(56)

Addresses = npt.NDArray[np.uint64]
"""Stream addresses, shape (n, 2), uint64: one 128-bit address a document."""


def _hkdf(key: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=None, info=info).derive(key)


@dataclass(frozen=True)
class ReleaseKey:
    """The secret of one release of one corpus.

    It is derived (HKDF-SHA256) from a master key, the release's id and a digest that identifies the
    corpus. A sum over a corpus, such as a count of documents, does not identify its corpus by
    itself: if two corpora had the same key, equal sums would get equal noise.

    `common` is the key of all releases under one master key; no noise is drawn from it.
    """

    secret: bytes = field(repr=False)
    common: bytes = field(default=b"", repr=False)

    @classmethod
    def derive(cls, master_key: bytes, release: str, corpus: bytes) -> ReleaseKey:
        """Derive the key of `release`; `corpus` is a digest of its corpus's files and their state.

        Raises ValueError unless the master key has 32 bytes.
        """
        if len(master_key) != KEY_BYTES:
            raise ValueError(f"a master key has {KEY_BYTES} bytes, not {len(master_key)}")
        info = b"quietcorpus/release/v2\0" + encode({"release": release, "corpus": corpus})
        common = _hkdf(master_key, b"quietcorpus/common/v1", KEY_BYTES)
        return cls(_hkdf(master_key, info, KEY_BYTES), common)

    @classmethod
    def fresh(cls) -> ReleaseKey:
        """Draw a key that belongs to no release, for draws that are never released."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def bound(self, digest: bytes) -> ReleaseKey:
        """Derive the key for a corpus that is known by this digest of its content alone.

        It is for noise on sums over rows that come without a place: the release's own key is not
        bound to their corpus, and equal sums of two corpora would get equal noise.
        """
        info = b"quietcorpus/bound/v1\0" + digest
        return ReleaseKey(_hkdf(self.secret, info, KEY_BYTES), self.common)

    @property
    def fingerprint(self) -> str:
        """Return a public 64-bit check value, equal for equal keys; it reveals nothing else."""
        return _hkdf(self.secret, b"quietcorpus/fingerprint/v1", 8).hex()

    def sealing(self, salt: bytes) -> bytes:
        """Derive a key of 32 bytes that encrypts the one message with this random salt."""
        return _hkdf(self.secret, b"quietcorpus/sealing/v2\0" + salt, KEY_BYTES)

    def identifying(self, column: str) -> Keystream:
        """Derive the keystream that digests documents' ids, one for all releases of a master key.

        Ids of two columns have no digest in common, since equal ids need not be of one document.
        """
        info = b"quietcorpus/identifying/v2\0" + column.encode()
        material = _hkdf(self.common or self.secret, info, 64)
        return Keystream(material[:32], material[32:])

    def comparing(self, column: str) -> str:
        """Return a public 64-bit check value of the key of `identifying`."""
        info = b"quietcorpus/comparing/v2\0" + column.encode()
        return _hkdf(self.common or self.secret, info, 8).hex()

    def naming(self) -> Keystream:
        """Derive the keystream that digests specs, one for all corpora of a master key."""
        material = _hkdf(self.common or self.secret, b"quietcorpus/naming/v1", 64)
        return Keystream(material[:32], material[32:])

    def stage(self, name: str, version: int, /, **parameters: Value) -> Keystream:
        """Derive the keystream of one stage.

        `parameters` are all that the stage's output law depends on besides its input, so that
        the same document under two sets of them gets independent noise. `version` is the law's
        version: a change of how the stage draws must raise it.
        """
        stage: dict[str, Value] = {"stage": name, "version": version, "parameters": parameters}
        digest = hashlib.sha256(encode(stage)).digest()
        material = _hkdf(self.secret, b"quietcorpus/stage/v2\0" + digest, 64)
        return Keystream(material[:32], material[32:])


class Keystream:
    """A random-access stream of pseudo-random blocks, one sequence for every address and lane.

    A *lane* (0..255) separates the uses that one stage makes of the same address.
    """

    def __init__(self, address_key: bytes, block_key: bytes) -> None:
        self._address_key = address_key
        # ECB is right here: AES serves as the PRF, block by block, and no input block ever repeats.
        self._cipher = Cipher(algorithms.AES(block_key), modes.ECB())  # noqa: S305

    def addresses(
        self, source: str, rows: Iterable[int], inputs: Iterable[bytes | memoryview[int]]
    ) -> Addresses:
        """Compute the stream address of each input at its source position: keyed BLAKE2b-128.

        `source` names the file, `rows` the record numbers in it, `inputs` the raw bytes. Returns
        uint64 of shape (n, 2). Addresses of distinct (source, row, input) collide with
        probability 2^-128 a pair.
        """
        name = source.encode()
        prefix = hashlib.blake2b(
            len(name).to_bytes(8, "little") + name,
            key=self._address_key,
            digest_size=ADDRESS_BYTES,
        )
        digests = bytearray()
        for row, raw in zip(rows, inputs, strict=True):
            state = prefix.copy()
            state.update(row.to_bytes(8, "little"))
            state.update(raw)
            digests += state.digest()
        return np.frombuffer(bytes(digests), dtype="<u8").reshape(-1, 2)

    def digest(self, **values: Value) -> str:
        """Compute a keyed digest of named values, hexadecimal; it tells nothing without the key."""
        plain = hashlib.sha256(encode(values)).digest()
        return self.addresses("", [0], [plain]).tobytes().hex()

    @staticmethod
    def parts(addresses: Addresses, offsets: npt.NDArray[np.int64]) -> Addresses:
        """Derive an address for each part of every input, offsets[i + 1] - offsets[i] for input i.

        The parts of one input never share a block; parts of two inputs do as rarely as the inputs.
        """
        parts = np.repeat(addresses, np.diff(offsets), axis=0)
        parts[:, 0] ^= (
            np.arange(len(parts)) - np.repeat(offsets[:-1] - offsets[0], np.diff(offsets))
        ).astype(np.uint64)
        return parts

    def blocks(
        self, addresses: Addresses, count: int, *, lane: int, start: int = 0
    ) -> npt.NDArray[np.uint8]:
        """Return blocks start .. start + count of every address, uint8 of shape (n, 16 * count)."""
        counters = np.arange(start, start + count, dtype=np.uint64)
        plain = _each(addresses, _tag(counters, lane))
        return self._encrypt(plain).reshape(len(addresses), count * BLOCK_BYTES)

    def gather(
        self, addresses: Addresses, counters: npt.NDArray[np.uint64], *, lane: int
    ) -> npt.NDArray[np.uint8]:
        """Return block `counters[i]` of `addresses[i]`, as uint8 of shape (n, 16)."""
        plain = np.array(addresses, dtype="<u8", order="C")
        plain[:, 1] ^= _tag(counters, lane)
        return self._encrypt(plain).reshape(-1, BLOCK_BYTES)

    def _encrypt(self, plain: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        # `update_into` insists on room for an unfinished block, which whole blocks never need.
        raw = np.empty(plain.nbytes + BLOCK_BYTES - 1, dtype=np.uint8)
        if plain.size:
            self._cipher.encryptor().update_into(plain.data.cast("B"), raw.data)
        return raw[: plain.nbytes]


@compiled
def _each(addresses, tags):  # type: ignore[no-untyped-def]
    """Combine every address with every tag, uint64 (n, tags, 2)."""
    plain = np.empty((len(addresses), len(tags), 2), dtype=np.uint64)
    for row in range(len(addresses)):
        for column in range(len(tags)):
            plain[row, column, 0] = addresses[row, 0]
            plain[row, column, 1] = addresses[row, 1] ^ tags[column]
    return plain


def _tag(counters: npt.NDArray[np.uint64], lane: int) -> npt.NDArray[np.uint64]:
    """Pack lane and counter into one word, which is XORed into an address.

    For random addresses two uses meet with probability 2^-128 a pair of blocks, whatever their
    counters.
    """
    return counters | (np.uint64(lane) << _LANE_SHIFT)
