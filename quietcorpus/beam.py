"""Transforms for Beam pipelines of your own: rows in, released rows and a card out.

    import apache_beam as beam
    from quietcorpus.beam import PrivatizeWords

    released = rows | PrivatizeWords("notes-2026-11", index="index", mechanism="madlib", epsilon=10)
    released.rows | beam.io.WriteToParquet(...)

Importing this module loads Beam; importing `quietcorpus` does not. The guide on Beam says what the
transforms promise, and what no pipeline around them can.
"""

from __future__ import annotations

from quietcorpus.pipelines.compose.base import Released
from quietcorpus.pipelines.kinds.bag_of_words.beam import PrivatizeBags, ReleasedBags
from quietcorpus.pipelines.kinds.histogram.beam import ReleaseHistogram, SelectVocabulary
from quietcorpus.pipelines.kinds.sentence_embeddings.beam import DrawCandidates
from quietcorpus.pipelines.kinds.user_histogram.beam import ReleaseUserHistogram
from quietcorpus.pipelines.kinds.word_embeddings.beam import LearnEmbeddings
from quietcorpus.pipelines.kinds.words.beam import PrivatizeWords

__all__ = [
    "DrawCandidates",
    "LearnEmbeddings",
    "PrivatizeBags",
    "PrivatizeWords",
    "ReleaseHistogram",
    "ReleaseUserHistogram",
    "Released",
    "ReleasedBags",
    "SelectVocabulary",
]
