"""The identity of a run: two runs of one identity make the same bytes.

A ledger asks for the identity, which holds every byte of the software: a release may
reveal its noise in one form only. A claim on an output says only who may write there, and asks for
less.
"""

from __future__ import annotations

from quietcorpus.mechanisms.encoding import Value
from quietcorpus.mechanisms.keystream import ReleaseKey
from quietcorpus.transforms.reading.documents import Plan

from ..environment.version import (
    environment_digest,
    libraries,
    quietcorpus_version,
)
from ..jobs.kind import Kind, asked
from ..schema.spec import Spec
from ..storage.claims import MASTER_KEY, Run


def run(spec: Spec, plan: Plan, kind: Kind, key: ReleaseKey) -> Run:
    """Return the run as a claim on the output identifies it; without the key, it reveals nothing.

    The key of its identity is bound to the corpus. Its other digests are of one key for all corpora
    of a master key, or none could say that it is the corpus that differs.
    """
    naming, place = key.naming(), {"release": spec.release, "output": spec.output}
    corpus = plan.corpus_digest(spec.corpus)
    whole = asked(spec, kind) | {"corpus": corpus, "computing": kind.computing}
    # A later version adds keys to a spec, and fields to artefacts: what was not said is left out.
    words = spec.model_dump(exclude_defaults=True, exclude={"accept"})
    artefacts = [one.model_dump(exclude_defaults=True) for one in kind.artefacts]
    parts: dict[str, Value] = {
        MASTER_KEY: "",
        "the spec": words,
        "the artefacts": artefacts,
        "the corpus": corpus,
    }
    law = naming.digest(
        claim="law",
        **whole,
        stages=environment_digest() if kind.laws is None else {"shards": 1, **kind.laws},
        libraries=libraries(),
    )
    return Run(
        spec.release,
        key.stage("claim", 1).digest(**whole, environment=environment_digest()),
        law,
        {name: naming.digest(claim=name, **place, asked=part) for name, part in parts.items()},
        quietcorpus_version(),
    )
