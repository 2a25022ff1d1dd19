"""Exports a trained run as the adapter that the program loads.

    python export.py --base BASE --weights RUN/best.pt --shipped ../internal/encoder/minilm \\
        --out ../gate/lora/adapter

Writes four files: adapter_config.json and adapter_model.safetensors (LoRA as
PEFT saves it, in half precision), heads.safetensors (float32) and
clarifier.json, which says how the input is made and which base the adapter is
for. The decision that may have stood in clarifier.json was for other weights and
is left out: decision.py fits it anew.
"""

import argparse
import hashlib
import json
import os

import torch
from safetensors.torch import load_file, save_file

import data
import model


def fingerprint(shipped: str) -> str:
    """The hash by which the program knows a base: of its three files, in this order."""
    parts = []
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        with open(os.path.join(shipped, name), "rb") as file:
            parts.append(file.read())
    digest = hashlib.sha256(f"{len(parts[0])} {len(parts[1])}\n".encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def load(base: str, weights: str | None) -> model.Clarifier:
    """A clarifier from a run's weights; without them, an untrained one."""
    torch.manual_seed(0)
    clarifier = model.Clarifier(base)
    if weights:
        state = torch.load(weights, weights_only=True)
        state = state.get("weights", state)  # a checkpoint holds more
        missing = clarifier.load_state_dict(state, strict=False)
        assert not missing.unexpected_keys, missing.unexpected_keys
    clarifier.eval()
    return clarifier


def load_exported(base: str, adapter: str) -> model.Clarifier:
    """A clarifier with exactly the weights that were exported."""
    clarifier = model.Clarifier(base)
    own = {n: p for n, p in clarifier.named_parameters()}
    with torch.no_grad():
        for name, value in load_file(os.path.join(adapter, "adapter_model.safetensors")).items():
            name = "peft." + name.removesuffix("weight") + "default.weight"
            own.pop(name).copy_(value.float())
        for name, value in load_file(os.path.join(adapter, "heads.safetensors")).items():
            own.pop(name).copy_(value)
    left = [n for n in own if not n.startswith("peft.") or "lora_" in n]
    assert not left, left
    clarifier.eval()
    return clarifier


def export(clarifier: model.Clarifier, out: str, base_name: str, base_fingerprint: str) -> None:
    clarifier.peft.save_pretrained(out)
    os.remove(os.path.join(out, "README.md"))  # an empty model card
    path = os.path.join(out, "adapter_model.safetensors")
    halves = {n: t.half().contiguous() for n, t in load_file(path).items()}
    save_file(halves, path, metadata={"format": "pt"})
    path = os.path.join(out, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = base_name
    config["target_modules"] = sorted(config["target_modules"])
    with open(path, "w") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")
    heads = {n: p.detach().float().contiguous() for n, p in clarifier.named_parameters()
             if not n.startswith("peft.")}
    save_file(heads, os.path.join(out, "heads.safetensors"), metadata={"format": "pt"})
    description = {
        "version": 2,
        "name": "askback-clarifier",
        "base": base_name,
        "base_fingerprint": base_fingerprint,
        "joint_layers": model.JOINT_LAYERS,
        "tokens": {"history": data.HISTORY_TOKENS, "question": data.QUESTION_TOKENS,
                   "passage_history": data.PASSAGE_HISTORY_TOKENS,
                   "passage_question": data.PASSAGE_QUESTION_TOKENS,
                   "passage": data.PASSAGE_TOKENS},
        "prefix": data.PREFIX,
        "tags": data.TAGS,
        "passage": ["answers", "live"],
        "activation": "gelu",
        "missing": model.MISSING,
        "heads": {n: list(t.shape) for n, t in sorted(heads.items())},
    }
    path = os.path.join(out, "clarifier.json")
    with open(path, "w") as file:
        json.dump(description, file, indent=1)
        file.write("\n")
    for name in os.listdir(out):
        os.chmod(os.path.join(out, name), 0o644)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="folder of the base model (Hugging Face form)")
    ap.add_argument("--weights", help="the run's best.pt; without it the adapter is untrained")
    ap.add_argument("--shipped", required=True, help="folder of the base as the program carries it")
    ap.add_argument("--out", required=True, help="folder of the adapter")
    args = ap.parse_args()
    with open(os.path.join(args.shipped, "config.json")) as file:
        name = json.load(file)["askback"]["name"]
    os.makedirs(args.out, exist_ok=True)
    export(load(args.base, args.weights), args.out, name, fingerprint(args.shipped))


if __name__ == "__main__":
    main()
