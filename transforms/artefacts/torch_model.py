"""Models that sentence-transformers loads, run by PyTorch, on a GPU where there is one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from quietcorpus.transforms.artefacts.encoder_model import Row
from quietcorpus.transforms.temporary import one_torch_thread

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["float32", "bfloat16"]
_ROWS = {("cpu", "float32"): 4, ("cpu", "bfloat16"): 16}
_ROWS_ON_A_GPU = 256
_LONGEST_SHARED = {"cpu": 96, "cuda": 512}  # tokens; longer ones fill a processor by themselves
_PROCESSOR = Path("/proc/cpuinfo")
_LOGGER = logging.getLogger("quietcorpus")


def fastest_precision() -> Precision:
    """Return bfloat16 if the processor multiplies such matrices (AMX), which is 2.7 times as fast.

    Embeddings then have a cosine of 0.9998 or more to those of float32. Without AMX, bfloat16 would
    be slower than float32.
    """
    try:
        flags = _PROCESSOR.read_text(encoding="utf-8").split()
    except OSError:
        return "float32"
    return "bfloat16" if "amx_bf16" in flags else "float32"


class TorchModel:
    """A model of sentence-transformers in evaluation mode; an `EncoderModel`."""

    def __init__(self, inner: SentenceTransformer, precision: Precision) -> None:
        self.inner = inner
        device = inner.device.type
        self.prefix = inner.prompts.get(inner.default_prompt_name or "") or ""
        self.most = inner.max_seq_length or 512
        self.known: int = inner.tokenizer.vocab_size
        self.rows = _ROWS.get((device, precision), _ROWS_ON_A_GPU)
        self.longest_shared = _LONGEST_SHARED.get(device, _LONGEST_SHARED["cpu"])
        self._tokenizing = threading.Lock()  # each call sets the truncation of all threads

    @classmethod
    def load(cls, folder: Path, precision: Precision) -> TorchModel:
        """Load a model of a folder; raises any exception if that is none, or reads no text."""
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as noise

        barred = noise.is_progress_bar_enabled()
        noise.disable_progress_bar()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            inner = SentenceTransformer(
                str(folder), device=device, local_files_only=True, trust_remote_code=False
            )
        finally:
            if barred:
                noise.enable_progress_bar()
        if not callable(getattr(inner.tokenizer, "pad", None)):
            raise TypeError
        if set(inner.tokenizer("a")["input_ids"]) <= set(inner.tokenizer.all_special_ids):
            raise ValueError  # its vocabulary is missing, and every word is unknown
        if device == "cpu":
            inner = inner.to(getattr(torch, precision))
            if precision == "bfloat16" != fastest_precision():
                _LOGGER.warning("this processor is slow at bfloat16, and the launcher's is not")
        return cls(inner.eval(), precision)

    def tokens(self, texts: Sequence[str]) -> list[Row]:
        with self._tokenizing:
            found = self.inner.tokenizer(list(texts), truncation=True, max_length=self.most)
        names = list(found.keys())
        return [{name: found[name][i] for name in names} for i in range(len(texts))]

    def run(self, rows: Sequence[Row], length: int) -> npt.NDArray[np.float32]:
        import torch

        features: Any = self.inner.tokenizer.pad(
            {name: [row[name] for row in rows] for name in rows[0]},
            padding="max_length",
            max_length=length,
            return_tensors="pt",
        )
        with torch.inference_mode(), one_torch_thread():
            on_device = {name: tensor.to(self.inner.device) for name, tensor in features.items()}
            embeddings = self.inner(on_device)["sentence_embedding"]
            found: npt.NDArray[np.float32] = embeddings.float().cpu().numpy()
        return found
