"""The transforms of `quietcorpus.beam` for Beam YAML, which finds them by deploy/beam-yaml.

Every function returns a transform whose outputs are `output` (the released rows), `card` (one row,
whose field `card` is the card in JSON) and, with `error_handling`, the rows that cannot be read.
Beam YAML shows these signatures and docstrings; it cannot read annotations that are strings.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import apache_beam as beam
from apache_beam.yaml.yaml_errors import ErrorHandlingConfig
from apache_beam.yaml.yaml_utils import SafeLineLoader

from quietcorpus.transforms.errors import InputError, shown

from . import beam as transforms

__all__ = [
    "draw_candidates",
    "learn_embeddings",
    "privatize_bags",
    "privatize_words",
    "release_histogram",
    "select_vocabulary",
]


_OUTPUTS = ("output", "card", "vocabulary", "compression")


class _Named(beam.PTransform):
    """A transform whose outputs have the names that Beam YAML gives them."""

    def __init__(self, make: Callable[..., beam.PTransform], errors: Any, **given: Any) -> None:
        super().__init__(make.__name__)
        handling = _plain(errors)
        if not isinstance(handling, dict | None):
            raise InputError(f"error_handling: expected a mapping, got {shown(handling)}")
        if handling is not None and (set(handling) != {"output"} or not handling["output"]):
            raise InputError("error_handling: give only `output`, the name for the errors")
        self._errors = handling["output"] if handling else None
        if self._errors is not None and self._errors in _OUTPUTS:
            raise InputError(f"error_handling: {self._errors} names another output; choose another")
        # The transform has a default for each option that is left out.
        said = {name: value for name, value in given.items() if value is not None}
        plain = {name: _plain(value) for name, value in said.items()}
        self._transform = make(**plain, errors="collect" if self._errors else "raise")

    def expand(self, rows: beam.PCollection) -> dict[str, beam.PCollection]:
        found = (rows | self._transform)._asdict()
        card = found.pop("card") | "card row" >> beam.Map(lambda text: beam.Row(card=str(text)))
        errors = found.pop("errors")
        outputs = {"output": found.pop("rows"), "card": card, **found}
        return outputs | ({self._errors: errors} if self._errors else {})


def _plain(value: Any) -> Any:
    """Return a value without what Beam YAML's loader adds to it, such as line numbers."""
    of_yaml = isinstance(value, dict | list | tuple | str)
    return SafeLineLoader.strip_metadata(value) if of_yaml else value


def privatize_words(
    release: str,
    index: str,
    mechanism: str,
    epsilon: Optional[float] = None,
    document_epsilon: Optional[float | Mapping[str, Any]] = None,
    out_of_vocabulary: str = "drop",
    search: Optional[Mapping[str, Any]] = None,
    tokenizer: Optional[Mapping[str, Any]] = None,
    truncation: Optional[float] = None,
    tuning: Optional[float] = None,
    text: str = "text",
    id: str = "id",
    keep: Sequence[str] = (),
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Replace every word of the rows' texts, under metric differential privacy.

    Out come `id`, the kept fields and `text`; every other field is dropped.

    Args:
        release: The id of the release, for one corpus and one state of it.
        index: A word index, as `quietcorpus index build` makes it.
        mechanism: `madlib` adds noise to a word's vector, `vickrey` does so and takes one of the
            two words nearest to that, `brr` flips bits of a word's code, `exponential` draws a word
            by its distance, and so does `tem`, up to a distance.
        epsilon: Of every word, per unit of distance.
        document_epsilon: Of every row, per unit of distance, shared equally by its words; or a
            mapping with `epsilon`, `delta`, `words` and `longer`, which whole rows keep to. Give
            exactly one of the two.
        out_of_vocabulary: `drop` leaves out a word that the index lacks, `draw` puts a random one.
        search: The engine that finds words; exact unless given.
        tokenizer: The rule that finds words, with its `name` and, unless it is the default, a
            `language`.
        truncation: For `tem`, the distance beyond which all words are equally likely; by epsilon
            unless given.
        tuning: For `vickrey`, which needs it: how much the second nearest word is preferred, above
            0 and at most 1.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        keep: Fields that are copied as they are. Nothing protects them.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.PrivatizeWords,
        error_handling,
        accept=accept,
        release=release,
        index=index,
        mechanism=mechanism,
        epsilon=epsilon,
        document_epsilon=document_epsilon,
        out_of_vocabulary=out_of_vocabulary,
        search=search,
        tokenizer=tokenizer,
        truncation=truncation,
        tuning=tuning,
        text=text,
        id=id,
        keep=keep,
    )


def privatize_bags(
    release: str,
    precision: int,
    epsilon: float,
    vocabulary: Mapping[str, Any],
    compression: Mapping[str, Any],
    histogram_epsilon: Optional[float] = None,
    accounting: Optional[str] = None,
    include: Optional[Sequence[str]] = None,
    tokenizer: Optional[Mapping[str, Any]] = None,
    text: str = "text",
    id: str = "id",
    keep: Sequence[str] = (),
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Release a noisy bag of words of each text, under limited-precision local privacy.

    Out come `id`, the kept fields, `terms` and `counts`; every other field is dropped. The outputs
    `vocabulary` and `compression` are rows that say which term and which bin a number is.

    Args:
        release: The id of the release, for one corpus and one state of it.
        precision: N. Adding or removing N words of one text is hidden.
        epsilon: Of the texts' counts; other stages add theirs.
        vocabulary: Either `public`, a path, or `private`, with `epsilon` and `delta`.
        compression: The map from words to bins, with its `method` and, unless that is none, `size`.
        histogram_epsilon: Of the histogram by which the words of a bin are drawn.
        accounting: `tight` or `per-entry`; tight unless given.
        include: `[bins]` adds the noisy counts of bins to every row.
        tokenizer: The rule that finds words, with its `name` and, unless it is the default, a
            `language`.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        keep: Fields that are copied as they are. Nothing protects them.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.PrivatizeBags,
        error_handling,
        accept=accept,
        release=release,
        precision=precision,
        epsilon=epsilon,
        vocabulary=vocabulary,
        compression=compression,
        histogram_epsilon=histogram_epsilon,
        accounting=accounting,
        include=include,
        tokenizer=tokenizer,
        text=text,
        id=id,
        keep=keep,
    )


def draw_candidates(
    release: str,
    candidates: str,
    epsilon: float,
    utility: Optional[str] = None,
    projections: Optional[int] = None,
    most_sentences: Optional[int] = None,
    encoder: Optional[str] = None,
    include: Optional[Sequence[str]] = None,
    text: str = "text",
    id: str = "id",
    keep: Sequence[str] = (),
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Draw a public document in place of each text, under sentence-level privacy.

    Out come `id`, the kept fields, `candidate` and `embedding`; every other field is dropped.

    Args:
        release: The id of the release, for one corpus and one state of it.
        candidates: Public documents, as `quietcorpus index build-candidates` makes them.
        epsilon: Of one sentence.
        utility: How well a candidate stands for a document.
        projections: The number of public directions, for depths.
        most_sentences: How many sentences of a text count, at most.
        encoder: The candidates' sentence encoder, by name or path.
        include: what to add to every row of the drawn candidate, `text`, `recoded` or both.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        keep: Fields that are copied as they are. Nothing protects them.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.DrawCandidates,
        error_handling,
        accept=accept,
        release=release,
        candidates=candidates,
        epsilon=epsilon,
        utility=utility,
        projections=projections,
        most_sentences=most_sentences,
        encoder=encoder,
        include=include,
        text=text,
        id=id,
        keep=keep,
    )


def learn_embeddings(
    release: str,
    user: str,
    users: int,
    delta: float,
    vocabulary: Mapping[str, Any],
    epsilon: Optional[float] = None,
    budgets: Optional[Mapping[str, Any]] = None,
    tokens: Optional[int] = None,
    dimensions: Optional[int] = None,
    window: Optional[int] = None,
    few_users: Optional[str] = None,
    tokenizer: Optional[Mapping[str, Any]] = None,
    text: str = "text",
    id: str = "id",
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Learn a vector for every word from users' texts, under user-level differential privacy.

    Out come `word` and `vector`, a row for each word that stands out of the noise.

    Args:
        release: The id of the release.
        user: The field that names a row's user. Rows whose user is null or empty do not count.
        users: About how many users there are, a public number.
        delta: Well below 1 / users.
        vocabulary: Either `public`, a path, or `private`, with `epsilon`, `delta` and `words`.
        epsilon: The budget of every user, in all.
        budgets: A budget for each group of users, as in a spec. Give exactly one of the two.
        tokens: How many known words of a user count, at most.
        dimensions: Of the vectors.
        window: How many words apart two words of a pair may be.
        few_users: `accept` releases even if there are too few users for the noise.
        tokenizer: The rule that finds words, with its `name` and, unless it is the default, a
            `language`.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.LearnEmbeddings,
        error_handling,
        accept=accept,
        release=release,
        user=user,
        users=users,
        delta=delta,
        vocabulary=vocabulary,
        epsilon=epsilon,
        budgets=budgets,
        tokens=tokens,
        dimensions=dimensions,
        window=window,
        few_users=few_users,
        tokenizer=tokenizer,
        text=text,
        id=id,
    )


def release_histogram(
    release: str,
    precision: int,
    epsilon: float,
    vocabulary: Mapping[str, Any],
    tokenizer: Optional[Mapping[str, Any]] = None,
    text: str = "text",
    id: str = "id",
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Count the words of all texts, with noise, under limited-precision local privacy.

    Out come `term_id`, `term` and `weight`, a row for each term.

    Args:
        release: The id of the release.
        precision: N. Adding or removing N words of one text is hidden.
        epsilon: Of the histogram.
        vocabulary: Either `public`, a path, or `private`, with `epsilon` and `delta`.
        tokenizer: The rule that finds words, with its `name` and, unless it is the default, a
            `language`.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.ReleaseHistogram,
        error_handling,
        accept=accept,
        release=release,
        precision=precision,
        epsilon=epsilon,
        vocabulary=vocabulary,
        tokenizer=tokenizer,
        text=text,
        id=id,
    )


def select_vocabulary(
    release: str,
    precision: int,
    epsilon: float,
    delta: float,
    tokenizer: Optional[Mapping[str, Any]] = None,
    text: str = "text",
    id: str = "id",
    error_handling: Optional[ErrorHandlingConfig] = None,
    accept: Sequence[str] = (),
) -> beam.PTransform:
    """Select the words that many texts have, privately.

    Out come `term_id`, `term` and `weight`, which is null.

    Args:
        release: The id of the release.
        precision: N. Adding or removing N words of one text is hidden.
        epsilon: Of the selection.
        delta: Of the selection.
        tokenizer: The rule that finds words, with its `name` and, unless it is the default, a
            `language`.
        text: The field of the text.
        id: The field of the id, which is unique in the input.
        error_handling: Where to send rows that cannot be read, which otherwise fail the job.
        accept: What is refused unless it is named here, as in a spec.
    """
    return _Named(
        transforms.SelectVocabulary,
        error_handling,
        accept=accept,
        release=release,
        precision=precision,
        epsilon=epsilon,
        delta=delta,
        tokenizer=tokenizer,
        text=text,
        id=id,
    )
