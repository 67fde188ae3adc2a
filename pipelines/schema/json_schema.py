"""The JSON Schema of a spec, for editors.

`python -m quietcorpus.pipelines.schema.json_schema` prints it.

A spec that it refuses is refused by `quietcorpus release`. The reverse does not hold: the models
alone check rules between keys, such as that an output lies outside the input.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from .spec import Spec


class _Untitled(GenerateJsonSchema):
    """A generator of schemas without the titles that pydantic makes of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave titles to the models."""
        return False


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec.

    It follows draft 7, the latest that all YAML language servers understand.
    """
    content = {"$schema": "http://json-schema.org/draft-07/schema#"}
    return content | Spec.model_json_schema(schema_generator=_Untitled)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
