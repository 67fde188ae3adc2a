"""The words of private texts: a worker finds them as the launcher would, or not at all."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from quietcorpus.indexes.tokens import tokenizers
from quietcorpus.indexes.tokens.tokenizers import ICU_WORDS_NAME, Tokenizer
from quietcorpus.indexes.tokens.vocabulary import Vocabulary
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.tokens import tokens_of

pytest.importorskip("icu4py")


@pytest.mark.parametrize("found", ["1.0", None])
def test_a_worker_of_another_icu_fails(monkeypatch: pytest.MonkeyPatch, found: str | None) -> None:
    # The launcher's rule comes with the vocabulary. Kills: words by another dictionary, under a
    # law that says the launcher's; a message that quotes the text.
    sent = pickle.dumps(Vocabulary(["secret"], Tokenizer.here(ICU_WORDS_NAME, "en")))
    monkeypatch.setattr(tokenizers, "icu_version", lambda: found)
    vocabulary = pickle.loads(sent)
    with pytest.raises(InputError) as caught:
        tokens_of(pa.array(["secret"]), vocabulary.tokenizer)
    said = str(caught.value)
    assert said.startswith("mechanism.tokenizer: this process has ")
    assert said.endswith("; install the same icu4py everywhere")
    assert "secret" not in said
