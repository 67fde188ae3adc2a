"""An embedding in place of each text, in a pipeline that others compose."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Literal

from ...compose.base import ComposedDocuments, OnErrors, RowsArguments


class DrawCandidates(ComposedDocuments):
    """A PTransform that draws a public document in place of each text, as `deep-candidate` does.

    Out come rows with `id`, the kept fields, `candidate` (the number of the public document), its
    `text` if asked, and `embedding` (its embedding, float32). All else is as with `PrivatizeWords`.

    Guarantee:
        One sentence of one row's text has epsilon-sentence privacy, as the card states it.
        A release id is for one corpus and one state of it; see `PrivatizeWords`.
        A row has one draw on processors of one kind: another kind may compute other last digits of
        an embedding, by which a row that is computed again is drawn anew.
    """

    def __init__(
        self,
        release: str,
        *,
        candidates: str | PathLike[str],
        epsilon: float,
        utility: Literal["depth", "mean-depth", "optimistic-depth", "similarity"] | None = None,
        projections: int | None = None,
        most_sentences: int | None = None,
        encoder: str | None = None,
        include: Sequence[str] | None = None,
        text: str = "text",
        id: str = "id",
        keep: Sequence[str] = (),
        errors: OnErrors = "raise",
        accept: Sequence[str] = (),
    ) -> None:
        """Check the arguments, find the master key, and open the candidates and their encoder.

        Args:
            release: the id of the release, for one corpus and one state of it.
            candidates: public documents, as `quietcorpus index build-candidates` makes them.
            epsilon: of one sentence.
            utility: how well a candidate stands for a document, as in a spec.
            projections: the number of public directions, for depths.
            most_sentences: how many sentences of a text count, at most.
            encoder: the candidates' sentence encoder, by name or path.
            include: what to add to every row of the drawn candidate: `text`, the public document's,
                and `recoded`, the mean of its recoded sentences.
            text: the field of the text.
            id: the field of the id, a string, bytes or a whole number, unique in the input.
            keep: fields that are copied as they are: nothing protects them.
            errors: what a row does whose text or id is null or unreadable: fail the job, or go to
                the output `errors`.
            accept: what is refused unless it is named here, as in a spec.

        Raises:
            InputError: anything that a person can fix, also as the transform is applied.
        """
        super().__init__(
            "sentence-embeddings",
            RowsArguments(release=release, text=text, id=id, errors=errors, accept=accept),
            keep,
            mechanism="deep-candidate",
            epsilon=epsilon,
            candidates=candidates,
            utility=utility,
            projections=projections,
            most_sentences=most_sentences,
            encoder=encoder,
            include=include,
        )
