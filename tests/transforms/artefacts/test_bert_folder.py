"""Folders of models are read as sentence-transformers reads them, or refused with the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders import KEY, WORDS, Floats, by_onnx, by_torch
from safetensors.torch import load_file, save_file

from quietcorpus.transforms.artefacts.encoder import EncoderSource, Runtime
from quietcorpus.transforms.errors import InputError
from quietcorpus.transforms.threads import one_torch_thread

POSITIONS = 40
OWN, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
TOKENIZER, POOLING = "tokenizer_config.json", "1_Pooling/config.json"
MODULES = ["Transformer", "Pooling", "Normalize"]
CAPITALS = "A CAT in K\u00f6ln, a D\u00f6g"
RANDOM = np.random.default_rng(7)
TEXTS = ["", "cat", CAPITALS, *(" ".join(RANDOM.choice(WORDS, n)) for n in (9, 17, 25, 70))]
GONE = object()
Change = Callable[[Path], None]


def edited(name: str, **values: Any) -> Change:
    """Return a change of keys of a JSON file; GONE takes a key away."""

    def change(folder: Path) -> None:
        path = folder / name
        before = json.loads(path.read_text()) if path.exists() else {}
        path.parent.mkdir(exist_ok=True)
        after = {key: value for key, value in (before | values).items() if value is not GONE}
        path.write_text(json.dumps(after))

    return change


def all_of(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for each in changes:
            each(folder)

    return change


def without(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def moved(before: str, now: str) -> Change:
    return lambda folder: (folder / before).rename(folder / now) and None


def tokenizer(**values: Any) -> Change:
    """Return a change of tokenizer.json; a value may be a change of keys of what is there."""

    def change(folder: Path) -> None:
        path = folder / "tokenizer.json"
        before = json.loads(path.read_text())
        for key, value in values.items():
            both = isinstance(value, dict) and isinstance(before[key], dict) and "type" not in value
            before[key] = before[key] | value if both else value
        path.write_text(json.dumps(before))

    return change


def modules(types: list[str], package: str = "sentence_transformers.models") -> Change:
    def change(folder: Path) -> None:
        listed = [
            {
                "idx": i,
                "name": str(i),
                "path": f"{i}_{name}" if i else "",
                "type": f"{package}.{name}",
            }
            for i, name in enumerate(types)
        ]
        (folder / "modules.json").write_text(json.dumps(listed))

    return change


def weights(named: Callable[[str], str | None] = str, dtype: torch.dtype | None = None) -> Change:
    """Return a change of the names of weights, some of which may go, and of their type."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        found = {named(name): value.to(dtype) for name, value in load_file(path).items()}
        kept = {name: value for name, value in found.items() if name is not None}
        save_file(kept, path, {"format": "pt"})

    return change


def sharded(folder: Path) -> None:
    from transformers import BertModel

    model = BertModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="10KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def saved_again(folder: Path) -> None:
    """By the version of sentence-transformers that is installed."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    shutil.rmtree(folder)
    model.save(str(folder))
    assert "max_seq_length" not in json.loads((folder / TRANSFORMER).read_text())
    assert json.loads((folder / TOKENIZER).read_text())["model_max_length"] == 16


def in_a_folder_of_its_own(folder: Path) -> None:
    (folder / "0_Transformer").mkdir()
    for path in folder.glob("*.*"):
        if path.name not in (OWN, "modules.json"):
            path.rename(folder / "0_Transformer" / path.name)
    listed = json.loads((folder / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(listed))


def dense(folder: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import Dense

    modules([*MODULES, "Dense"])(folder)
    (folder / "3_Dense").mkdir()
    Dense(16, 8).save(str(folder / "3_Dense"))


def of_pieces(folder: Path) -> None:
    """The tokeniser of multilingual models, as XLM-RoBERTa's class writes it."""
    from transformers import XLMRobertaTokenizer

    ends = ["<s>", "<pad>", "</s>", "<unk>"]
    words = [f"\u2581{word}" for word in [*WORDS, "A", "in"]]
    pieces = [*ends, *words, "\u2581", *"CATDkoln\u00f6g", "<mask>"]
    made = XLMRobertaTokenizer([(piece, -float(i)) for i, piece in enumerate(pieces)])
    (folder / TOKENIZER).unlink()
    made.save_pretrained(folder)


NO_LIMIT = edited(TRANSFORMER, max_seq_length=GONE)
PROMPT = edited(OWN, prompts={"query": "red sky: "}, default_prompt_name="query")
MEAN = {"pooling_mode_mean_tokens": False}

ALIKE: dict[str, tuple[Change, int]] = {
    "as it is": (all_of(), 16),
    "saved again": (saved_again, 16),
    "a limit of the tokeniser alone": (
        all_of(NO_LIMIT, edited(TOKENIZER, model_max_length=12)),
        12,
    ),
    "a limit of each": (edited(TOKENIZER, model_max_length=24), 16),
    # sentence-transformers 3 writes this where a limit was raised
    "a limit above the tokeniser's": (edited(TOKENIZER, model_max_length=12), 16),
    "no limit but the positions": (
        all_of(NO_LIMIT, edited(TOKENIZER, model_max_length=GONE)),
        POSITIONS,
    ),
    "no settings": (without(TRANSFORMER), 32),
    "a limit of a name of old": (moved(TRANSFORMER, "sentence_roberta_config.json"), 16),
    "cut on the left": (edited(TOKENIZER, truncation_side="left"), 16),
    "cut on the left by the tokeniser's file": (
        tokenizer(
            truncation={
                **{"direction": "Left", "max_length": 8},
                **{"strategy": "LongestFirst", "stride": 0},
            }
        ),
        16,
    ),
    "padded on the left": (edited(TOKENIZER, padding_side="left"), 16),
    "fewer dimensions": (edited(OWN, truncate_dim=5), 16),
    "a prompt": (PROMPT, 16),
    "a prompt by another name": (edited(OWN, prompts={"query": "red sky: "}), 16),
    "no prompt to leave out": (edited(POOLING, include_prompt=False), 16),
    "no norm": (modules(MODULES[:2]), 16),
    "a norm with settings": (edited("2_Normalize/config.json", module_output_name=None), 16),
    "no modules": (without("modules.json"), 32),
    "the first token": (edited(POOLING, **MEAN, pooling_mode_cls_token=True), 16),
    "a pooling of version 6": (edited(POOLING, **MEAN, pooling_mode="cls"), 16),
    "a pooling of a list": (edited(POOLING, pooling_mode=["mean"]), 16),
    "no pooling named": (edited(POOLING, pooling_mode_mean_tokens=GONE), 16),
    "no pooling chosen": (edited(POOLING, **MEAN), 16),
    "capitals by the tokeniser's settings": (edited(TOKENIZER, do_lower_case=False), 16),
    "accents by the tokeniser's settings": (edited(TOKENIZER, strip_accents=False), 16),
    "capitals by the tokeniser's file": (tokenizer(normalizer={"lowercase": False}), 16),
    "lower case twice": (edited(TRANSFORMER, do_lower_case=True), 16),
    "no settings of the tokeniser": (without(TOKENIZER), 16),
    "a plain tokeniser": (
        all_of(
            edited(TOKENIZER, tokenizer_class="PreTrainedTokenizerFast"),
            tokenizer(normalizer={"lowercase": False}),
        ),
        16,
    ),
    "a tokeniser of pieces": (of_pieces, 16),
    "a transformer in a folder": (in_a_folder_of_its_own, 16),
    "shards": (sharded, 16),
    "16 bits": (all_of(weights(dtype=torch.float16), edited("config.json", dtype="float16")), 16),
    "bfloat16": (
        all_of(weights(dtype=torch.bfloat16), edited("config.json", dtype="bfloat16")),
        16,
    ),
    "64 bits": (weights(dtype=torch.float64), 16),
    "names of old": (
        weights(
            lambda name: name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        ),
        16,
    ),
    "a prefix": (weights(lambda name: f"bert.{name}"), 16),
    "no pooler": (weights(lambda name: None if "pooler" in name else name), 16),
    "another epsilon": (edited("config.json", layer_norm_eps=0.1), 16),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model as sentence-transformers 2 and 3 save it, whose weights differ much."""
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "plain"
    letters = "abcdefghijklmnopqrstuvwxyz"
    signs = [*letters, *letters.upper(), *"\u00f6,:"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *signs]
    vocabulary = {token: i for i, token in enumerate([*tokens, *(f"##{sign}" for sign in signs)])}
    BertTokenizer(vocabulary, model_max_length=32).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = BertConfig(
            **{"vocab_size": len(vocabulary), "hidden_size": 16, "intermediate_size": 32},
            **{"num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.4},
            max_position_embeddings=POSITIONS,
        )
        BertModel(config).save_pretrained(folder)
    modules(MODULES)(folder)
    edited(TRANSFORMER, max_seq_length=16, do_lower_case=False)(folder)
    edited(POOLING, word_embedding_dimension=16, pooling_mode_mean_tokens=True)(folder)
    edited(OWN)(folder)
    return folder


def made(plain: Path, folder: Path, change: Change) -> Path:
    shutil.copytree(plain, folder)
    change(folder)
    return folder


def theirs(folder: Path) -> Floats:
    """The embeddings by the library itself, each text alone."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu").to(torch.float32)
    with one_torch_thread():
        return np.stack([model.encode([text])[0] for text in TEXTS])


def equal(found: Floats, expected: Floats) -> bool:
    if found.shape != expected.shape:
        return False
    norms = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found * expected).sum(axis=1) / norms
    return bool(cosines.min() > 1 - 1e-5) and np.allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ALIKE)
def test_embeddings_are_the_librarys(name: str, plain: Path, tmp_path: Path) -> None:
    """Kills: a limit that one runtime passes over, texts that are cut at another end, a prompt that
    counts where it should not, capitals that one tokeniser keeps, weights that are not found.
    """
    change, limit = ALIKE[name]
    folder = made(plain, tmp_path / "model", change)
    expected = theirs(folder)
    for load in (by_onnx, by_torch):
        encoder = load(folder)
        assert encoder._model._model.most == limit
        assert equal(encoder.encode(TEXTS), expected), load.__name__


def test_control_variants_differ(plain: Path, tmp_path: Path) -> None:
    """The texts show what a change does: a setting that is passed over would be seen."""
    before = theirs(plain)
    differ = ["a prompt", "cut on the left", "no settings", "no norm", "the first token"]
    for name in ["as it is", "shards", *differ]:
        folder = made(plain, tmp_path / name, ALIKE[name][0])
        assert equal(theirs(folder), before) == (name not in differ), name


TORCH_ALONE: dict[str, tuple[Change, str]] = {
    "a decoder": (edited("config.json", is_decoder=True), "it sets is_decoder"),
    "another activation": (edited("config.json", hidden_act="relu"), "it sets hidden_act"),
    "relative positions": (
        edited("config.json", position_embedding_type="relative_key"),
        "it sets position_embedding_type",
    ),
    "a pooling of two": (
        edited(POOLING, pooling_mode=["cls", "mean"]),
        "it pools tokens by cls and mean",
    ),
    **{
        f"a pooling by {mode}": (
            edited(POOLING, **MEAN, **{key: True}),
            f"it pools tokens by {mode}",
        )
        for key, mode in {
            "pooling_mode_max_tokens": "max",
            "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
            "pooling_mode_weightedmean_tokens": "weightedmean",
            "pooling_mode_lasttoken": "lasttoken",
        }.items()
    },
    "a prompt that is left out": (
        all_of(PROMPT, edited(POOLING, include_prompt=False)),
        "its pooling leaves out the prompt",
    ),
    "a Dense": (dense, "its modules are Transformer, Pooling, Normalize, Dense"),
    "tokens of norm 1": (
        edited("2_Normalize/config.json", module_input_name="token_embeddings"),
        "it normalizes token_embeddings",
    ),
    "another length of texts": (
        edited(TRANSFORMER, processing_kwargs={"text": {"max_length": 9}}),
        "it sets processing_kwargs",
    ),
    "another architecture's settings": (
        edited(TRANSFORMER, config_args={"hidden_act": "relu"}),
        "it sets config_args",
    ),
    "another tokeniser's settings": (
        edited(TRANSFORMER, max_seq_length=GONE, tokenizer_args={"model_max_length": 9}),
        "it sets tokenizer_args",
    ),
    "lower case by the transformer": (
        all_of(edited(TRANSFORMER, do_lower_case=True), edited(TOKENIZER, do_lower_case=False)),
        "do_lower_case with a tokeniser that keeps capitals",
    ),
    "a pickle": (pickled, "its weights are a pickle (.bin), and no safetensors"),
    "no tokeniser's file": (
        lambda folder: (
            (folder / "vocab.txt").write_text(
                "\n".join(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
            )
            and (folder / "tokenizer.json").unlink()
        ),
        "it has no tokenizer.json",
    ),
    "a tokeniser of another class": (
        edited(TOKENIZER, tokenizer_class="ElectraTokenizer"),
        "its tokeniser is a ElectraTokenizer",
    ),
    "a tokeniser that is not its class's": (
        tokenizer(normalizer={"type": "Lowercase"}),
        "its tokenizer.json is not BERT's, and its tokenizer_class is",
    ),
    "another first token": (
        edited(TOKENIZER, cls_token="[MASK]"),
        "its cls_token and sep_token are not those of tokenizer.json",
    ),
    "a sparse encoder": (edited(OWN, model_type="SparseEncoder"), "it is a SparseEncoder"),
}


@pytest.mark.parametrize("name", TORCH_ALONE)
def test_folders_that_onnx_runtime_refuses(name: str, plain: Path, tmp_path: Path) -> None:
    """Kills: a setting that ONNX Runtime passes over, and PyTorch that differs from the library."""
    change, reason = TORCH_ALONE[name]
    folder = made(plain, tmp_path / "model", change)
    assert equal(by_torch(folder).encode(TEXTS), theirs(folder))
    assert refusal(folder, "onnxruntime") == (
        f"{KEY}: {folder} is a model of another kind than ONNX Runtime can run here (BERT's, with "
        f"mean or first-token pooling): {reason}; install the extra [torch]"
    )


REFUSED: dict[str, tuple[Change, str, str]] = {
    "a limit of 1": (
        edited(TRANSFORMER, max_seq_length=1),
        *["its limit of 1 tokens leaves no room"] * 2,
    ),
    "a limit of 2": (
        edited(TRANSFORMER, max_seq_length=2),
        *["its limit of 2 tokens leaves no room"] * 2,
    ),
    "a missing prompt": (
        edited(OWN, default_prompt_name="no"),
        "'no' is missing",
        "'no' not found",
    ),
    "no pooling": (modules(MODULES[:1]), "its modules are Transformer", "sentence_embedding"),
    "no pooling's settings": (without(POOLING), "FileNotFoundError", "TypeError"),
    "modules of others": (
        modules(MODULES, "custom_st"),
        "its modules are custom_st.Transformer",
        "ValueError",
    ),
    "a weight missing": (
        weights(lambda name: None if "layer.1.output.dense.w" in name else name),
        "KeyError: 'encoder.layer.1.output.dense.weight'",
        "its weights lack encoder.layer.1.output.dense.weight",
    ),
    "names of others": (
        weights(lambda name: f"auto_model.{name}"),
        "KeyError: 'embeddings.word_embeddings.weight'",
        "its weights lack embeddings.LayerNorm.bias",
    ),
    "an adapter": (
        edited("adapter_config.json", base_model_name_or_path="/elsewhere"),
        *["an adapter, to a model outside the folder"] * 2,
    ),
    "another folder's tokeniser": (
        edited(TRANSFORMER, tokenizer_name_or_path="/elsewhere"),
        *["a tokeniser outside the folder"] * 2,
    ),
    "tokens at random": (
        edited("tokenizer.json", model={"dropout": 0.1}),
        *["a tokeniser that draws a text's tokens at random"] * 2,
    ),
    "another folder's weights": (
        edited("model.safetensors.index.json", weight_map={"a": "../other.safetensors"}),
        *["weights outside the folder"] * 2,
    ),
}


def refusal(folder: Path, runtime: Runtime) -> str:
    source = EncoderSource.resolve(KEY, str(folder))
    asked = EncoderSource(KEY, source.name, source.digest, runtime, "float32", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quietcorpus.transforms.artefacts.encoder._software", lambda _: "")
        with pytest.raises(InputError) as raised:
            asked.open()
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", REFUSED)
def test_folders_that_neither_library_loads(name: str, plain: Path, tmp_path: Path) -> None:
    """Kills: random weights for those that are missing, a file that no digest covers, a limit that
    cuts nothing or everything.
    """
    change, by_graph, by_library = REFUSED[name]
    folder = made(plain, tmp_path / "model", change)
    assert by_graph in refusal(folder, "onnxruntime")
    assert by_library in refusal(folder, "torch")


def test_more_tokens_than_positions_are_cut(plain: Path, tmp_path: Path) -> None:
    """Kills: a long text that ends the program, as it ends the library's own."""
    folder = made(plain, tmp_path / "model", edited(TRANSFORMER, max_seq_length=4 * POSITIONS))
    with pytest.raises(RuntimeError):
        theirs(folder)
    found = [load(folder) for load in (by_onnx, by_torch)]
    assert [encoder._model._model.most for encoder in found] == [POSITIONS] * 2
    assert equal(*(encoder.encode(TEXTS) for encoder in found))


def test_positions_that_begin_after_the_blank(tmp_path: Path) -> None:
    """RoBERTa's. Kills: a limit of two tokens too many, which ends the program at a long text."""
    from transformers import RobertaConfig, RobertaModel

    from quietcorpus.transforms.artefacts.torch_model import _positions

    config = RobertaConfig(
        **{"vocab_size": 9, "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1},
        **{"num_attention_heads": 1, "max_position_embeddings": 12, "pad_token_id": 1},
    )
    model = RobertaModel(config)
    most = _positions(model)
    assert most == 10
    model(torch.full((1, most), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, most + 1), 5))
