"""`quietcorpus evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

import quietcorpus as qc
from quietcorpus.evaluation.verdict import first_draw, of_everything
from quietcorpus.transforms.errors import shown

from .command import command
from .options import quiet_option, seed_option

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
    short_help="Measure the utility and the leakage of a release.",
    note="; no report was written, and what was measured is kept",
)
@click.argument("release")
@click.option("--against", required=True, help="The private corpus: a path, a glob or a URI.")
@click.option(
    "--output",
    required=True,
    help="The place for the report: a folder or a URI, inside the trust boundary.",
)
@click.option("--spec", type=click.Path(), help="The spec, for further draws, attacks and sweeps.")
@click.option("--text", help="The corpus's column of texts; by default the spec's, or `text`.")
@click.option("--id", help="The corpus's column of ids; by default the spec's, if there is one.")
@click.option("--label", help="The corpus's column of classes, for classifiers to learn.")
@click.option("--user", help="The corpus's column of authors, for attacks to infer.")
@click.option("--target", help="The corpus's column of numbers, for regressions on word vectors.")
@click.option(
    "--public-vectors",
    metavar="PATH",
    help="Public word vectors (GloVe's or word2vec's text), to use beside a release's own.",
)
@click.option(
    "--public-text",
    metavar="PATH",
    help="Public texts like the corpus's, from which an attacker on words learns how frequent they "
    "are, and which follow which.",
)
@click.option(
    "--reference-text",
    metavar="PATH",
    help="The same documents as another tool left them (redacted, say), with the columns of texts "
    "and ids; they are measured beside a release of words.",
)
@click.option(
    "--neighbours-of",
    type=_Words(),
    metavar="WORD,WORD",
    help="Words of a release of word vectors whose nearest ones to print.",
)
@click.option(
    "--documents",
    default=5_000,
    show_default=True,
    type=click.IntRange(50),
    help="The largest number of documents to sample.",
)
@click.option(
    "--draws",
    type=click.IntRange(1),
    help="The number of draws of every setting; the release is one draw of its own setting. By "
    "default 3 with --spec, and 1 without.",
)
@click.option(
    "--sweep",
    multiple=True,
    help="Values of a key of the mechanism, as KEY=VALUE,VALUE, such as epsilon=1,2,5,10; may be "
    "given again, for a grid.",
)
@click.option(
    "--compare",
    type=click.Path(),
    help="A YAML file of named variants of the mechanism, such as `dense: {compression: {method: "
    "none}}`; each is measured, under every combination of --sweep.",
)
@seed_option("the sample")
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="The number of processes on this machine, by Ray.",
)
@click.option(
    "--no-audit", "audits", is_flag=True, flag_value=False, default=True, help="Skip the audits."
)
@click.option(
    "--topics",
    is_flag=True,
    help="Write the release's topics beside the corpus's own, in words, to topics.json: as private "
    "as the corpus.",
)
@quiet_option
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
