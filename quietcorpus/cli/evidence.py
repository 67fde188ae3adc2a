"""`quietcorpus audit`, `canaries`, `evaluate` and `provenance`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

import quietcorpus as qc
from quietcorpus.evaluation.verdict import first_draw, of_everything
from quietcorpus.transforms.errors import shown

from .command import command


@command(
    api=lambda: qc.audit,
    short_help="Test a spec's mechanisms against their guarantees.",
    note="; nothing was written",
)
@click.argument("spec", type=click.Path())
def audit(spec: str, **given: Any) -> Iterator[str]:
    """Test the mechanisms of SPEC against their stated guarantees.

    If the law of an output can be computed, the audit computes its largest privacy loss from it. In
    all cases, it runs the code of a release on inputs that are as far apart as the statement
    allows, and computes a lower bound of epsilon from the draws. It reads no corpus: inputs are
    made up, and the spec's own input need not exist. If an audit finds more than is stated, the
    exit code is 1. If all pass, this proves nothing: these audits looked and found nothing.

    \b
      quietcorpus audit spec.yaml
      quietcorpus audit spec.yaml --draws 1000000 --output audited
    """
    content = qc.audit(spec, **given)
    from quietcorpus.pipelines.audit.audit import lines, refuse

    yield from lines(content)
    refuse(content)


@command(
    api=lambda: qc.canaries,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    short_help="Test whole releases of a copy of the corpus by canaries.",
    note="; nothing was published",
)
@click.argument("spec", type=click.Path())
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED)
def canaries(spec: str, beam_options: tuple[str, ...], **given: Any) -> Iterator[str]:
    """Test releases of SPEC as a whole, by canaries that coins put into a copy of its corpus.

    The command releases the copy as the spec says, from reading to published files, on the engine
    that BEAM_OPTIONS name. It then guesses the coins from the published files, and the guesses
    bound epsilon from below. If the bound is more than is stated, the exit code is 1. It publishes
    nothing, asks no ledger, and deletes the copy and its releases. Its output holds no text of the
    corpus, but depends on the corpus without protection.

    \b
      quietcorpus canaries spec.yaml
      quietcorpus canaries spec.yaml --canaries 3000 --work gs://private/canaries \\
        --runner=DataflowRunner --project=...
    """
    content = qc.canaries(spec, beam_options=beam_options, **given)
    from quietcorpus.pipelines.canaries.canaries import lines, refuse

    yield from lines(content)
    refuse(content)


_MARKS = {"well": "✓", "caution": "!", "harm": "✗"}


class _Words(click.ParamType):
    """A list of words, separated by commas."""

    name = "words"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        words = tuple(word.strip() for word in value.split(","))
        if not all(words):
            self.fail(f"{shown(value)} has an empty word", param, ctx)
        return words


@command(
    api=lambda: qc.evaluate,
    types={"neighbours_of": _Words()},
    short_help="Measure the utility and the leakage of a release.",
    note="; no report was written, and what was measured is kept",
)
@click.argument("release")
@click.option(
    "--sweep",
    multiple=True,
    help="Values of a key of the mechanism, as KEY=VALUE,VALUE, such as epsilon=1,2,5,10; may be "
    "given again, for a grid.",
)
@click.option(
    "--no-audit", "audits", is_flag=True, flag_value=False, default=True, help="Skip the audits."
)
def evaluate(release: str, sweep: Sequence[str], **given: Any) -> Iterator[str]:
    """Measure the utility and the leakage of RELEASE, against the corpus it was made from.

    The report (evaluation.html, with its numbers in the same folder) is made from the private
    corpus, without protection: keep it where the corpus is. As long as it stays there, nothing is
    published, and no budget is spent. The same command resumes a run that was stopped.

    \b
      quietcorpus evaluate releases/complaints --against 'corpus/*.parquet' --spec spec.yaml \\
        --label product --sweep epsilon=1,2,5,10 --output private/evaluation
    """
    from quietcorpus.pipelines.evaluate.sweep import parsed

    content = qc.evaluate(release, sweep=parsed(sweep), **given)
    yield from lines(content)
    yield f"report    {given['output']}/evaluation.html"
    if content["audits"]:
        from quietcorpus.pipelines.audit.audit import refuse

        refuse(content["audits"])


def lines(content: dict[str, Any]) -> Iterator[str]:
    """Yield the verdict, and then the figures of the release's own setting, measure by measure."""
    release, corpus, verdict = content["release"], content["corpus"], content["verdict"]
    yield f"verdict   {_MARKS[verdict['state']]} {verdict['sentence']}"
    for number in verdict["numbers"]:
        beside = f" ({number['beside']})" if number["beside"] else ""
        yield f"  {number['value']} {number['what']}{beside}"
    yield f"release   {release['id']} ({release['kind']}), {release['cost']}"
    of = f"{corpus['documents']:,} of {corpus['of']:,} documents"
    yield f"measured  {of}, {content['draws']} draws"
    sure = f"{content['confidence']:.0%}"
    yield f"intervals {sure}, over what an attack or a classifier was tried on, else over draws"
    whole: dict[str, list[str]] = {}
    for figure in content["figures"]:
        if of_everything(figure) and not figure["setting"]:
            title = content["measures"][figure["measure"]]["title"]
            line = " ".join(filter(None, (title, figure["group"])))
            own = figure["first"]["low"] is not None
            told = _told(first_draw(figure) if own else figure)
            if own and figure["draws"] > 1:
                told += f" [mean {figure['mean']:.3g}]"
            whole.setdefault(line, []).append(f"{figure['subject']} {told}")
    for line, parts in whole.items():
        yield f"  {line}: {', '.join(parts)}"
    for word, found in content["neighbours"].items():
        yield f"nearest   to {word}"
        yield from (f"  {subject}: {', '.join(near)}" for subject, near in found.items())
    if content["audits"]:
        verdicts = Counter(one["verdict"] for one in content["audits"]["audits"])
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        yield f"audits    {said}"
    yield from (f"odds      {sentence}" for sentence in content["odds"])
    yield from (f"strongest {sentence}" for sentence in verdict["strongest"])
    above, rest = (verdict[key] for key in ("above", "rest"))
    if above or rest:
        yield f"attacks   {len(above)} of {len(above) + len(rest)} find more than in noise"
    for mark, sentences in (("!", above), ("-", rest), ("?", verdict["untold"])):
        for sentence in sentences:
            yield f"  {mark} {sentence}"

    if content["recommendations"]:
        yield "to do     the most harmful first"
    for number, one in enumerate(content["recommendations"], 1):
        yield f"  {number}. {one['advice']}"
        yield f"     {one['found']}"


def _told(figure: Mapping[str, Any]) -> str:
    if figure["low"] is None:
        return f"{figure['mean']:.3g}"
    return f"{figure['mean']:.3g} ({figure['low']:.3g} to {figure['high']:.3g})"


@command(
    api=lambda: qc.check_provenance,
    short_help="Look for texts that are said to be public in the corpus.",
    note="; no report was written",
)
@click.argument("spec", type=click.Path())
def provenance(spec: str, report: str, public: Sequence[str], **given: Any) -> Iterator[str]:
    """Look for the public texts of a release in its private corpus, before the release.

    The texts of a pool, those of candidates that keep theirs, and those of --public are compared
    with all documents of SPEC's input. A text is found if a document equals it; or if the shorter
    of the two can be made of a passage of the longer one by editing at most 3 of 10 words. Texts of
    fewer than 12 words do not count. If more texts are found than --accept, the exit code is 1.

    This reads the corpus without protection. The report, and whether this command fails, reveal
    facts about the corpus: they are for readers who may read it. No release runs this by itself.

    \b
      quietcorpus provenance spec.yaml --report private/provenance.json \\
        --public 'reviews/*.parquet'
    """
    content = qc.check_provenance(spec, report=report, public=public, **given)
    from quietcorpus.pipelines.provenance.provenance import lines, refuse

    yield from lines(content, report)
    refuse(content)
