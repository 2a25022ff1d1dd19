"""Exports a run of train.py as the adapter that the program loads, and golden outputs.

    python ship.py --base BASE --weights RUN/all.pt --shipped ../../internal/encoder/minilm \\
        --out ../../conversation/reply/adapter --golden ../../conversation/reply/testdata/golden.jsonl

LoRA (as PEFT saves it) and heads are written in half precision; reply.json says how
the input is made and which base the adapter is for. decision.py adds the decision.
The golden outputs are computed in float32 from exactly the weights that were written.
"""

import argparse
import json
import os
import sys

import torch
from safetensors.torch import load_file, save_file

import train
from train import BUDGET, KINDS, Reader, data

from export import fingerprint


def export(reader: Reader, out: str, shipped: str) -> None:
    with open(os.path.join(shipped, "config.json")) as file:
        name = json.load(file)["askback"]["name"]
    os.makedirs(out, exist_ok=True)
    reader.peft.save_pretrained(out)
    os.remove(os.path.join(out, "README.md"))  # an empty model card
    path = os.path.join(out, "adapter_model.safetensors")
    save_file({n: t.half().contiguous() for n, t in load_file(path).items()}, path, metadata={"format": "pt"})
    path = os.path.join(out, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = name
    config["target_modules"] = sorted(config["target_modules"])
    with open(path, "w") as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write("\n")
    heads = {n: p.detach().half().contiguous() for n, p in reader.named_parameters() if not n.startswith("peft.")}
    save_file(heads, os.path.join(out, "heads.safetensors"), metadata={"format": "pt"})
    path = os.path.join(out, "reply.json")
    described = {"version": 1, "name": "askback-reply", "base": name, "base_fingerprint": fingerprint(shipped),
                 "tokens": BUDGET, "kinds": KINDS}
    with open(path, "w") as file:
        json.dump(described, file, indent=1)
        file.write("\n")
    for name in os.listdir(out):
        os.chmod(os.path.join(out, name), 0o644)


def load_exported(base: str, folder: str) -> Reader:
    """A reader with exactly the weights that were exported."""
    reader = Reader(base)
    own = dict(reader.named_parameters())
    with torch.no_grad():
        for name, value in load_file(os.path.join(folder, "adapter_model.safetensors")).items():
            own.pop("peft." + name.removesuffix("weight") + "default.weight").copy_(value.float())
        for name, value in load_file(os.path.join(folder, "heads.safetensors")).items():
            own.pop(name).copy_(value.float())
    left = [n for n in own if not n.startswith("peft.") or "lora_" in n]
    assert not left, left
    reader.eval()
    return reader


def golden_cases() -> list[dict]:
    """Some of each kind and language, and what real text holds besides."""
    found, seen = [], {}
    for c in train.cases(["more.jsonl", "natural.jsonl"]):
        at = c["kind"], c["language"]
        if seen.setdefault(at, 0) < (2 if c["language"] == "en" else 1):
            seen[at] += 1
            found.append(c)
    strange = [("", []), ("?!", ["a", "b"]), ("[SEP] [CLS] ☕ naïve 价格 e\u0301 " * 40, [f"option {i} " * 20 for i in range(12)])]
    for n, (reply, options) in enumerate(strange):
        found.append({"id": f"strange-{n}", "reply": reply, "kind": "unclear_choice", "chosen": [], "pending": {
            "question": "is it open? " * (1 + 60 * n), "text": "Which one?" * (1 + 40 * n),
            "options": [{"id": str(i + 1), "text": t} for i, t in enumerate(options)]}})
    return found


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True)
    ap.add_argument("--weights", required=True)
    ap.add_argument("--shipped", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--golden", required=True)
    args = ap.parse_args()
    reader = Reader(args.base)
    unknown = reader.load_state_dict(torch.load(args.weights, weights_only=True), strict=False).unexpected_keys
    assert not unknown, unknown
    export(reader, args.out, args.shipped)
    reader = load_exported(args.base, args.out)
    tokenizer = data.load_tokenizer(args.base)
    cases = golden_cases()
    with open(args.golden, "w", encoding="utf-8") as file:
        for c, (kind, meant) in zip(cases, train.read(reader, tokenizer, cases)):
            print(json.dumps({
                "id": c["id"], "pending": c["pending"], "reply": c["reply"], "ids": train.example(tokenizer, c).ids,
                "kinds": [round(v, 5) for v in kind], "options": [round(v, 5) for v in meant]}, ensure_ascii=False), file=file)


if __name__ == "__main__":
    main()
