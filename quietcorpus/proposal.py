"""A first spec for a corpus, with the reasons beside its values: `quietcorpus init`."""

from __future__ import annotations

from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Interval

from .arguments import checked
from .places import Place, absolute, process_restored

if TYPE_CHECKING:
    from quietcorpus.pipelines.init.proposal import Proposal


@checked
@process_restored()
def propose_spec(
    corpus: Place,
    *,
    want: Literal["counts", "terms", "text", "document-vectors", "word-vectors", "overview"],
    protect: Literal["words", "sentences", "documents", "users"] | None = None,
    text: str | None = None,
    id: str | None = None,
    user: str | None = None,
    users: Annotated[int, Interval(ge=2)] | None = None,
    label: str | None = None,
    language: str | None = None,
    output: Place | None = None,
) -> Proposal:
    """Propose a spec for a corpus, from the columns of its first thousand records.

    What is wanted and what is protected decide the kind of release. Columns that are not given are
    guessed. The spec holds nothing of the records except names of columns and their language. It is
    valid; `before` has the commands that make what it needs.

    Args:
        corpus: a file or a glob.
        want: the content of the release.
        protect: the unit that the guarantee hides; needed for text (words, documents or users),
            words or users for terms (words unless given), and decided for all else.
        text: the column of the texts; by default, the one with the most words.
        id: a column that never repeats; by default, one that is named as an id.
        user: the column that names users; by default, one with such a name, or with ids that
            repeat.
        users: the approximate number of users, a public figure, where they are protected.
        label: a column to copy as it is: nothing protects it.
        language: the texts' language, as a code; by default, the one that their script or their
            frequent words suggest.
        output: the file to write, which must not exist; by default, none.

    Raises:
        InputError: anything that a person can fix.
    """
    from quietcorpus.pipelines.init.answers import Protected, Wanted, answers, escape_of, look, unit
    from quietcorpus.pipelines.init.proposal import propose
    from quietcorpus.transforms.errors import InputError

    protected = unit(Wanted(want), None if protect is None else Protected(protect))
    place = fspath(corpus)
    escape = escape_of(absolute(place))
    found = look(absolute(place), escape)
    named = {"text": text, "id": id, "user": user, "label": label, "language": language}
    chosen = answers(place, Wanted(want), protected, found, named, users)
    proposed = _judged(propose(replace(chosen, escape=escape)))
    if output is not None:
        try:
            with open(output, "x", encoding="utf-8") as stream:
                stream.write(proposed.content)
        except FileExistsError:
            raise InputError(f"output: {fspath(output)} exists; name another file") from None
        except OSError:
            raise InputError(
                f"output: {fspath(output)} cannot be written; check the path and the permissions"
            ) from None
    return proposed


def _judged(proposed: Proposal) -> Proposal:
    """Add the verdict, if nothing is missing that the release needs."""
    from quietcorpus.pipelines.jobs.kind import prepare
    from quietcorpus.transforms.errors import InputError

    if proposed.before:
        return proposed
    try:
        return replace(proposed, verdict=prepare(proposed.spec).verdict)
    except InputError:  # such as a package that is not installed, which the release names
        return proposed
