"""The identity of a run: two runs of one identity make the same bytes."""

from __future__ import annotations

from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.pipelines.environment.version import environment_digest
from quietcorpus.pipelines.kinds.kind import Kind, asked
from quietcorpus.pipelines.spec.spec import Spec
from quietcorpus.transforms.reading.documents import Plan


def identity(spec: Spec, plan: Plan, kind: Kind, key: ReleaseKey) -> str:
    """Return a digest of all that a release's bytes depend on.

    It reveals nothing without the key, which is bound to the corpus.
    """
    return key.stage("claim", 1).digest(
        **asked(spec, kind),
        corpus=plan.corpus_digest(spec.corpus),
        environment=environment_digest(),
        computing=kind.computing,
    )
