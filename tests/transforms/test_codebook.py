"""The codebook: what is refused once a private vocabulary is known."""

from __future__ import annotations

import os

import pytest

from quietcorpus.indexes.compression import Method
from quietcorpus.indexes.vocabulary import Vocabulary
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.codebook import Compression, check_size, codebook
from quietcorpus.transforms.errors import InputError, NoisyOutcome

WORDS = Vocabulary(["alpha", "beta", "gamma"])


def test_more_bins_than_terms_that_were_selected_tell_a_noisy_outcome() -> None:
    # Kills: a refusal that tells how many terms were selected, and spends no budget.
    key = ReleaseKey.derive(os.urandom(32), "test", b"")
    with pytest.raises(NoisyOutcome, match="4 is larger than the vocabulary of 3 terms"):
        codebook(Compression(Method.RANDOM, 4), key, None, WORDS)
    assert codebook(Compression(Method.RANDOM, 3), key, None, WORDS).size == 3


def test_more_bins_than_a_public_list_has_are_bad_input() -> None:
    # The negative control: it is known before anything is read.
    with pytest.raises(InputError) as raised:
        check_size(4, 3)
    assert type(raised.value) is InputError
