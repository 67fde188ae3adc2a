"""`quietcorpus evaluate` on a workspace's release, and what it wrote."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Workspace

CANARY = "zanzibarquokka"
CLASSES = ("homeaffairs", "warcorrespondence")
TERMS = 400
BAGS: dict[str, Any] = {
    "input": {"path": "input/*.parquet", "id": "article", "keep": ["article", "label"]},
    "mechanism.precision": 1,
    "mechanism.epsilon": 6,
    "mechanism.histogram_epsilon": 1,
    "mechanism.compression": {"method": "frequency", "size": 200},
}


def write_corpus(workspace: Workspace, texts: list[str], telling: str = "") -> None:
    """The texts with a canary in each, a class that their words tell, and twelve authors; and a
    vocabulary of their frequent words.

    `telling` is said a dozen times more in every text of the first class.
    """
    numbers = range(len(texts))
    second = ["australia" not in text.lower() for text in texts]
    texts = [
        text if other or not telling else f"{text} {' '.join([telling] * 12)}"
        for text, other in zip(texts, second, strict=True)
    ]
    workspace.parquet(
        {
            "text": [f"{text} {CANARY}" for text in texts],
            "article": [f"paper-{n}" for n in numbers],
            "label": [CLASSES[other] for other in second],
            "user": [f"somebody-{n % 12}" for n in numbers],
        }
    )
    words = Counter(
        word
        for text in texts
        for word in set(text.lower().split())
        if word.isalpha() and word.isascii()
    )
    frequent = [word for word, _ in words.most_common(TERMS)]
    (workspace.folder / "vocabulary.txt").write_text("\n".join(frequent) + "\n")


def evaluate(
    workspace: Workspace, *arguments: str, spec: str | None = "spec.yaml", **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command on the release."""
    given = ["--spec", spec] if spec else []
    return workspace.run(
        *("evaluate", "released/out", "--against", "input/corpus.parquet", *given),
        *("--output", "report", *arguments),
        **options,
    )


def content_of(workspace: Workspace) -> dict[str, Any]:
    """The content of `evaluation.json`."""
    text = (workspace.folder / "report/evaluation.json").read_text()
    content: dict[str, Any] = json.loads(text)
    return content


def figures(
    content: dict[str, Any], group: str = "", **setting: str
) -> dict[tuple[str, str], float]:
    """Means by measure and subject, of one group and setting."""
    return {
        (one["measure"], one["subject"]): one["mean"]
        for one in content["figures"]
        if one["setting"] == setting and one["group"] == group
    }


def assert_silent(workspace: Workspace, said: str, secrets: Iterable[str]) -> None:
    """Assert that no file of the report and no output holds what was read; nothing is left."""
    files = [path for path in (workspace.folder / "report").rglob("*") if path.is_file()]
    assert len(files) > 3
    written = {str(path): path.read_bytes().decode("utf-8", "replace") for path in files}
    for place, text in {**written, "the screen": said}.items():
        for secret in secrets:
            assert secret not in text, place
    assert workspace.leftovers() == []
