"""`quietcorpus evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import click

from quietcorpus import api
from quietcorpus.evaluation.verdict import first_draw, of_everything
from quietcorpus.pipelines.terminal.failures import guarded
from quietcorpus.pipelines.terminal.logs import configure_logging


@click.command(short_help="What a release is good for, and what it gives away.")
@click.argument("release")
@click.option("--against", required=True, help="The private corpus: a path, a glob or a URI.")
@click.option("--output", required=True, help="A folder or a URI, inside the trust boundary.")
@click.option("--spec", type=click.Path(), help="The spec, for further draws, attacks and sweeps.")
@click.option("--text", help="The corpus's column of texts; the spec's, or `text`.")
@click.option("--id", "id_", help="Its column of ids; the spec's, if there is one.")
@click.option("--label", help="Its column of classes, to be learnt.")
@click.option("--user", help="Its column of authors, to be found out.")
@click.option(
    "--documents",
    default=5_000,
    show_default=True,
    type=click.IntRange(50),
    help="How many to sample at most.",
)
@click.option(
    "--draws",
    type=click.IntRange(1),
    help="Of every setting; the release is one of its own. 3 with --spec, and 1 without.",
)
@click.option(
    "--sweep",
    multiple=True,
    help="KEY=VALUE,VALUE of the mechanism, such as epsilon=1,2,5,10; several make a grid.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the sample.")
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Processes of this machine, by Ray.",
)
@click.option("--no-audit", is_flag=True, help="Leave out the audits of the spec.")
@click.option("--quiet", is_flag=True, help="No progress bar; plain log lines.")
def evaluate(
    release: str,
    against: str,
    output: str,
    spec: str | None,
    text: str | None,
    id_: str | None,
    label: str | None,
    user: str | None,
    documents: int,
    draws: int | None,
    sweep: tuple[str, ...],
    seed: int,
    workers: int,
    no_audit: bool,
    quiet: bool,
) -> None:
    """Measure the utility and the leakage of RELEASE, against the corpus it was made from.

    The report (evaluation.html, with its numbers in the same folder) is made from the private
    corpus, without protection: keep it where the corpus is. As long as it stays there, nothing is
    published, and no budget is spent. The same command goes on where a run was stopped.

    \b
      quietcorpus evaluate releases/complaints --against 'corpus/*.parquet' --spec spec.yaml \\
        --label product --sweep epsilon=1,2,5,10 --output private/evaluation
    """

    def run() -> dict[str, Any]:
        configure_logging("INFO")
        from quietcorpus.pipelines.evaluate.sweep import parsed

        return api.evaluate(
            release,
            against=against,
            output=output,
            spec=spec,
            text=text,
            id=id_,
            label=label,
            user=user,
            documents=documents,
            draws=draws,
            sweep=parsed(sweep),
            seed=seed,
            workers=workers,
            audits=not no_audit,
            progress=not quiet,
        )

    content = guarded(run, lambda: "; no report was written, and what was measured is kept")
    for line in lines(content):
        click.echo(line)
    click.echo(f"report    {output}/evaluation.html")
    if content["audits"]:
        from quietcorpus.pipelines.audit.audit import refuse

        guarded(partial(refuse, content["audits"]))


def lines(content: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of the release's own setting, a line for each measure."""
    release, corpus = content["release"], content["corpus"]
    yield f"release   {release['id']} ({release['kind']}), {release['cost']}"
    of = f"{corpus['documents']:,} of {corpus['of']:,} documents"
    yield f"measured  {of}, {content['draws']} draws"
    sure = f"{content['confidence']:.0%}"
    yield f"intervals {sure}, of utility over draws, of attacks over what they were tried on"
    whole: dict[str, list[str]] = {}
    for figure in content["figures"]:
        if of_everything(figure) and not figure["setting"]:
            title = content["measures"][figure["measure"]]["title"]
            line = " ".join(filter(None, (title, figure["group"])))
            attack = content["measures"][figure["measure"]]["part"] == "attack"
            shown = first_draw(figure) if attack else figure
            whole.setdefault(line, []).append(f"{figure['subject']} {_told(shown)}")
    for line, parts in whole.items():
        yield f"  {line}: {', '.join(parts)}"
    if content["audits"]:
        verdicts = Counter(one["verdict"] for one in content["audits"]["audits"])
        said = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        yield f"audits    {said}"
    above, rest = (content["verdict"][key] for key in ("above", "rest"))
    if above or rest:
        yield f"attacks   {len(above)} of {len(above) + len(rest)} find more than in noise"
    for mark, sentences in (("!", above), ("-", rest)):
        for sentence in sentences:
            yield f"  {mark} {sentence}"


def _told(figure: Mapping[str, Any]) -> str:
    if figure["low"] is None:
        return f"{figure['mean']:.3g}"
    return f"{figure['mean']:.3g} ({figure['low']:.3g} to {figure['high']:.3g})"
