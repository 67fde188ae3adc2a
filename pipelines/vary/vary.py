"""The job of `quietcorpus vary`: a release of public texts, whose texts a command writes anew.

It reads a release that is published, and nothing else: no corpus, no key and no ledger. What the
command makes of released rows is post-processing, whatever it does with them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.names import is_plain
from quietcorpus.transforms.shards import Written, staged_content, write_tables

from ..card import page
from ..card.model import Card, File
from ..card.public_texts import PublicTextsMechanism
from ..card.variation import UNCHECKED, Variation, VariedBy
from ..card.verify import card_content, verify
from ..environment.signing import RELEASE_KEY, configured_key
from ..environment.version import (
    environment_digest,
    quietcorpus_version,
    same_code,
    software,
)
from ..storage import files as storage
from ..storage import layout
from ..storage.claims import Run
from ..storage.output import Output
from ..storage.places import absolute, inside
from ..terminal.progress import Steps
from .program import Program


def vary(
    path: str,
    output: str,
    command: Sequence[str],
    minutes: float,
    on_publishing: Callable[[], None],
    *,
    progress: bool,
) -> Card:
    """Make and publish a release whose texts a command has written, from those of another.

    Args:
        path: the place of the release, whose files are all checked.
        output: the place of the new release.
        command: the program and its arguments.
        minutes: how long the program may run.
        on_publishing: is called just before the new release may exist.
        progress: whether to show a bar.

    Raises:
        InputError: anything that a person can fix.
        StageError: the program takes too long.
    """
    place = Output(output)
    place.require_free()
    program, signing = Program.find(command, minutes), configured_key(RELEASE_KEY)
    steps = Steps(3, bar=progress)
    with steps.step("verifying the release"):
        source = verify(path)
        mechanism = _varied(path, source)
        digest = hashlib.sha256(card_content(absolute(path))).hexdigest()
        texts, votes = (
            storage.read_table(f"{absolute(path)}/{name}") for name in (layout.TEXTS, layout.VOTES)
        )
    if inside(output, absolute(path)):
        raise InputError(f"output: {output} lies in the release; name a place of its own")
    made = _variation(digest, program)
    with place.staging(_run(source, made)) as staged:
        with steps.step("varying texts", len(texts), "texts"):
            given = texts.drop_columns(["weight"]).to_pylist()
            anew = pa.array(program.vary(given), texts.schema.field("text").type)
        with steps.step("publishing"):
            column = texts.schema.get_field_index("text")
            tables = {layout.TEXTS: texts.set_column(column, "text", anew), layout.VOTES: votes}
            files = [
                write_tables([table], table.schema, name, staged.staging, None)
                for name, table in tables.items()
            ]
            varied = mechanism.model_copy(update={"resample": None, "variation": made})
            card = _card(source, varied, files, staged.created)
            rows = page.first_rows(varied, files, lambda file: staged_content(file, None))
            card, pages = page.texts(card, rows, signing)
            staged.publish(files, pages, on_publishing)
    return card


def _varied(path: str, card: Card) -> PublicTextsMechanism:
    """Return the mechanism of a release whose texts can be varied; raises InputError for others."""
    mechanism = card.mechanism
    if not isinstance(mechanism, PublicTextsMechanism):
        raise InputError(
            f"{path}: is of the kind {mechanism.kind}, and only released public texts can be varied"
        )
    if mechanism.variation is not None:
        raise InputError(f"{path}: its texts are varied already; vary those of the first release")
    return mechanism


def _variation(digest: str, program: Program) -> Variation:
    """Describe what a program makes of the release whose card has a digest.

    Names of files have no folders on a card, which is handed out.
    """
    if not all(map(is_plain, program.arguments)):
        raise InputError("PROGRAM: an argument of several lines; put it into a file")
    files = [one for one in program.arguments if os.path.isfile(one)]
    shown = [os.path.basename(one) if one in files else one for one in program.arguments]
    sums = [hashlib.sha256(Path(one).read_bytes()).hexdigest() for one in files]
    return Variation(
        card_sha256=digest,
        command=shown,
        files=[
            VariedBy(name=os.path.basename(one), sha256=own)
            for one, own in zip(files, sums, strict=True)
        ],
    )


def _run(source: Card, made: Variation) -> Run:
    """Return the run as a claim tells it; what it makes costs nothing, by whatever software."""
    asked = {
        "the release": made.card_sha256,
        "the command": hashlib.sha256(
            json.dumps(made.model_dump(mode="json")).encode()
        ).hexdigest(),
    }
    told = f"{' '.join(asked.values())} {environment_digest()}"
    identity = hashlib.sha256(told.encode()).hexdigest()
    return Run(source.release, identity, "", asked, quietcorpus_version())


def _card(
    source: Card, mechanism: PublicTextsMechanism, files: Sequence[Written], created: str
) -> Card:
    """Return the release's own card with the new files: what was spent was spent for both."""
    limits = [*source.guarantee.not_protected, UNCHECKED]
    return source.model_copy(
        update={
            "created": created,
            "mechanism": mechanism,
            "guarantee": source.guarantee.model_copy(update={"not_protected": limits}),
            "files": [File(path=f.path, sha256=f.sha256, rows=f.rows) for f in files],
            "code_sha256": same_code(source.code_sha256),
            "software": software(),
        }
    )
