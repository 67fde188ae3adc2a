"""The block `search`: the engine that finds the words of noisy vectors and codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from quietcorpus.indexes.search.protocol import DEFAULT_PROBES, EXACT, SearchEngine, Searching

from .values import Count, Strict, of_key


class SearchSpec(Strict):
    """An engine, and its settings."""

    engine: Annotated[
        SearchEngine,
        Field(
            strict=False,
            description="`faiss-ivf` is approximate, and part of the release's law; the others "
            "find the same words as `exact`, so that the release has the same bytes",
        ),
    ]
    probes: Annotated[
        Count | None,
        Field(
            description="for `faiss-ivf` alone: the number of lists that are searched; "
            f"{DEFAULT_PROBES} unless given"
        ),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _with_probes(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("engine") == SearchEngine.FAISS_IVF:
            return {**given, "probes": given.get("probes", DEFAULT_PROBES)}
        return given

    @model_validator(mode="after")
    def _probes_of_lists(self) -> SearchSpec:
        if (self.engine is SearchEngine.FAISS_IVF) != (self.probes is not None):
            raise of_key("probes", "is the number of lists to search, for faiss-ivf alone")
        return self

    def check(self, usable: Sequence[SearchEngine], mechanism: str) -> None:
        """Raise PydanticCustomError unless the engine is one of those of the mechanism."""
        if self.engine not in usable:
            raise of_key(
                "search.engine",
                f"{self.engine.value} is not for {mechanism}; give one of "
                f"{', '.join(engine.value for engine in usable)}",
            )


def searching(spec: SearchSpec | None) -> Searching:
    """Return the choice of an engine; exact search where a spec has none."""
    return EXACT if spec is None else Searching(spec.engine, spec.probes)


def unless_given(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Remove `search`, and other keys, from a block's values where the spec has none.

    A spec without them keeps the digest that it had before there were such keys.
    """
    return {
        key: value
        for key, value in content.items()
        if value is not None or key not in ("search", *keys)
    }
