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

OWN = ("spec", "job_name", "template_location", "staging_location")
"""What is the launching job's alone."""

WORKERS = ("max_num_workers", "num_workers")
"""What is the release's job's alone; the launching job has one worker."""


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
                [sys.executable, "-m", "pipelines.cli", "release", spec, "--quiet", *options],
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("quietcorpus: ")]
            raise RuntimeError(lines[-1] if lines else f"exit code {done.returncode}")


def split(arguments: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """The spec's URI, the options of the launching job, and those of the release's."""
    given = {
        name.removeprefix("--"): value
        for name, _, value in (argument.partition("=") for argument in arguments)
    }
    if not given.get("spec"):
        sys.exit("quietcorpus: error: --spec: missing; give the spec's URI")

    def options(names: dict[str, str]) -> list[str]:
        return [f"--{name}={value}" if value else f"--{name}" for name, value in names.items()]

    mine = {k: v for k, v in given.items() if k not in ("spec", *WORKERS)}
    theirs = {k: v for k, v in given.items() if k not in OWN}
    return given["spec"], options(mine | {"max_num_workers": "1"}), options(theirs)


def main() -> None:
    """Build the job, and leave."""
    spec, mine, theirs = split(sys.argv[1:])
    pipeline = beam.Pipeline(options=PipelineOptions(mine))
    pipeline | beam.Create([(spec, theirs)]) | "release" >> beam.ParDo(Release())
    pipeline.run()


if __name__ == "__main__":
    main()
