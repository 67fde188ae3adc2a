"""The block of public word vectors, of whatever use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .values import Location, Strict


class PublicVectors(Strict):
    """Public word vectors."""

    public: Annotated[
        Location, Field(description="public word vectors, in word2vec's or GloVe's text format")
    ]
