"""The flex template: a job of one step, which runs `quietcorpus release` to its end.

A flex template's launcher must leave once the graph is built, but a release is published by its
launcher after the job. So the template's job is the launcher: its one step runs the ordinary
command on one worker, and the command starts, watches and publishes the release's own job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from quietcorpus.pipelines.environment.credentials import refuse_in_options
from quietcorpus.transforms.errors import InputError

OWN = ("spec", "job_name", "template_location", "staging_location")
"""Options of the launching job alone."""

WORKERS = ("max_num_workers", "num_workers")
"""Options of the release's job alone; the launching job has one worker."""


class Release(beam.DoFn):
    """Runs the command for the spec at a URI; raises its one line of error."""

    def process(self, element: tuple[str, list[str]]) -> None:
        """Fetch the spec and run."""
        uri, options = element
        with tempfile.TemporaryDirectory() as folder:
            spec = os.path.join(folder, "spec.yaml")
            source = FileSystems.open(uri, compression_type=CompressionTypes.UNCOMPRESSED)
            with source as stream, open(spec, "wb") as sink:
                sink.write(stream.read())
            done = subprocess.run(  # noqa: S603 - the image's own command
                [
                    sys.executable,
                    "-m",
                    "quietcorpus.cli.main",
                    "release",
                    spec,
                    "--quiet",
                    *options,
                ],
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("quietcorpus: ")]
            raise RuntimeError(lines[-1] if lines else f"exit code {done.returncode}")


def split(arguments: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Split arguments into the spec's URI, the launcher's options and the release's.

    Options keep their order and their repetitions, and values that follow as words of their own.
    """
    given: list[tuple[str, list[str]]] = []
    for argument in arguments:
        if argument.startswith("--") or not given:
            given.append((argument.partition("=")[0].removeprefix("--"), [argument]))
        else:
            given[-1][1].append(argument)
    specs = [words for name, words in given if name == "spec"]
    # "--spec=URI", or "--spec URI"
    spec = " ".join(specs[-1]).removeprefix("--spec")[1:] if specs else ""
    if not spec:
        sys.exit("quietcorpus: error: --spec: missing; give the spec's URI")

    def without(*names: str) -> list[str]:
        return [word for name, words in given if name not in names for word in words]

    return spec, [*without("spec", *WORKERS), "--max_num_workers=1"], without(*OWN)


def main() -> None:
    """Build the job, and leave."""
    try:
        refuse_in_options(sys.argv[1:])  # the command would, once they are in this job
    except InputError as error:
        sys.exit(f"quietcorpus: error: {error}")
    spec, mine, theirs = split(sys.argv[1:])
    pipeline = beam.Pipeline(options=PipelineOptions(mine))
    pipeline | beam.Create([(spec, theirs)]) | "release" >> beam.ParDo(Release())
    pipeline.run()


if __name__ == "__main__":
    main()
