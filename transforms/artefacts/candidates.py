"""Candidates by their URI: found by the launcher, and opened by its workers."""

from __future__ import annotations

from quietcorpus.indexes.documents.candidates import Candidates, CandidatesManifest, open_candidates

from .folders import FolderKind, FolderSource


class CandidatesSource(FolderSource[Candidates]):
    """Candidates, named by a key of the spec."""

    kind = FolderKind(
        "a set of candidates",
        "quietcorpus index build-candidates",
        CandidatesManifest.read,
        open_candidates,
    )
