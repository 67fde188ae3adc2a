"""The keyed stream: every random bit that a mechanism uses, as a function of its input.

Noise is a pseudo-random function (PRF) of everything that determines a mechanism's output law:
the release key, which is bound to the corpus, the stage with its parameters, the source position
and the input itself. A retried bundle therefore repeats its bits and spends nothing, while two
different inputs, two corpora, or one input under two parameter sets, never share a bit. The
guarantees that stand on this stream are computational: they hold for an adversary who cannot break
AES-256 or keyed BLAKE2b.
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
from quietcorpus.mechanisms.encoding import Value, encode

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

    It is derived (HKDF-SHA256) from a master key, the release's id and what tells the corpus from
    any other. A sum over a corpus, such as a count of documents, does not tell by itself which
    corpus it is of: were the key of two corpora the same, equal sums would get equal noise.

    `common` is that of all releases under one master key; nothing is drawn by it.
    """

    secret: bytes = field(repr=False)
    common: bytes = field(default=b"", repr=False)

    @classmethod
    def derive(cls, master_key: bytes, release: str, corpus: bytes) -> ReleaseKey:
        """Derive the key of `release` of `corpus`, which is a digest of its files and their state.

        Raises ValueError unless the master key has 32 bytes.
        """
        if len(master_key) != KEY_BYTES:
            raise ValueError(f"a master key has {KEY_BYTES} bytes, not {len(master_key)}")
        info = b"quietcorpus/release/v2\0" + encode({"release": release, "corpus": corpus})
        common = _hkdf(master_key, b"quietcorpus/common/v1", KEY_BYTES)
        return cls(_hkdf(master_key, info, KEY_BYTES), common)

    @classmethod
    def fresh(cls) -> ReleaseKey:
        """A key of no release: of draws that nobody will release."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @property
    def fingerprint(self) -> str:
        """A public 64-bit check value: equal keys have equal ones, and it reveals nothing else."""
        return _hkdf(self.secret, b"quietcorpus/fingerprint/v1", 8).hex()

    def sealing(self, salt: bytes) -> bytes:
        """A key of 32 bytes for the encryption of one message, known by its random salt."""
        return _hkdf(self.secret, b"quietcorpus/sealing/v2\0" + salt, KEY_BYTES)

    def identifying(self, column: str) -> Keystream:
        """By which documents' ids are digested, alike in all releases under one master key.

        Ids of two columns have no digest in common: equal ones need not be of one document.
        """
        info = b"quietcorpus/identifying/v2\0" + column.encode()
        material = _hkdf(self.common or self.secret, info, 64)
        return Keystream(material[:32], material[32:])

    def comparing(self, column: str) -> str:
        """A public 64-bit check value of the key that `identifying` digests by."""
        info = b"quietcorpus/comparing/v2\0" + column.encode()
        return _hkdf(self.common or self.secret, info, 8).hex()

    def naming(self) -> Keystream:
        """By which specs are digested, alike for all corpora under one master key."""
        material = _hkdf(self.common or self.secret, b"quietcorpus/naming/v1", 64)
        return Keystream(material[:32], material[32:])

    def stage(self, name: str, version: int, /, **parameters: Value) -> Keystream:
        """The keystream of one stage.

        `parameters` are all that the stage's output law depends on besides its input, so that
        the same document under two sets of them gets independent noise. `version` is the law's
        own: whoever changes how the stage draws raises it.
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
        # One block at a time is the point: AES is the PRF, and no input block ever repeats.
        self._cipher = Cipher(algorithms.AES(block_key), modes.ECB())  # noqa: S305

    def addresses(
        self, source: str, rows: Iterable[int], inputs: Iterable[bytes | memoryview[int]]
    ) -> Addresses:
        """The stream address of each input at its source position: keyed BLAKE2b-128.

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
        """A keyed digest of named values, hexadecimal; it tells nothing without the key."""
        plain = hashlib.sha256(encode(values)).digest()
        return self.addresses("", [0], [plain]).tobytes().hex()

    @staticmethod
    def parts(addresses: Addresses, offsets: npt.NDArray[np.int64]) -> Addresses:
        """An address for every part of each input: input i has offsets[i + 1] - offsets[i] parts.

        The parts of one input never share a block; for the parts of two, as for the inputs.
        """
        parts = np.repeat(addresses, np.diff(offsets), axis=0)
        parts[:, 0] ^= (
            np.arange(len(parts)) - np.repeat(offsets[:-1] - offsets[0], np.diff(offsets))
        ).astype(np.uint64)
        return parts

    def blocks(
        self, addresses: Addresses, count: int, *, lane: int, start: int = 0
    ) -> npt.NDArray[np.uint8]:
        """Blocks start .. start + count of every address, as uint8 of shape (n, 16 * count)."""
        counters = np.arange(start, start + count, dtype=np.uint64)
        plain = _each(addresses, _tag(counters, lane))
        return self._encrypt(plain).reshape(len(addresses), count * BLOCK_BYTES)

    def gather(
        self, addresses: Addresses, counters: npt.NDArray[np.uint64], *, lane: int
    ) -> npt.NDArray[np.uint8]:
        """Block `counters[i]` of `addresses[i]`, as uint8 of shape (n, 16)."""
        plain = np.array(addresses, dtype="<u8", order="C")
        plain[:, 1] ^= _tag(counters, lane)
        return self._encrypt(plain).reshape(-1, BLOCK_BYTES)

    def _encrypt(self, plain: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        raw = np.empty(plain.nbytes + BLOCK_BYTES - 1, dtype=np.uint8)
        if plain.size:
            self._cipher.encryptor().update_into(plain.data.cast("B"), raw.data)
        return raw[: plain.nbytes]


@compiled
def _each(addresses, tags):  # type: ignore[no-untyped-def]
    """Every address with every tag, uint64 (n, tags, 2)."""
    plain = np.empty((len(addresses), len(tags), 2), dtype=np.uint64)
    for row in range(len(addresses)):
        for column in range(len(tags)):
            plain[row, column, 0] = addresses[row, 0]
            plain[row, column, 1] = addresses[row, 1] ^ tags[column]
    return plain


def _tag(counters: npt.NDArray[np.uint64], lane: int) -> npt.NDArray[np.uint64]:
    """What is XORed into an address: lane and counter.

    For random addresses two uses meet with probability 2^-128 a pair of blocks, whatever their
    counters.
    """
    return counters | (np.uint64(lane) << _LANE_SHIFT)
