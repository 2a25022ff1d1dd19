"""Measures a clarifier: predictions of every case, and figures from predictions."""

import argparse
import json
import math
import os

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

import data
import model

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLIC_CASES = 200  # judged of each public set's held-out part


@torch.no_grad()
def predict(clarifier, examples, dtype=torch.float32, size: int = 16):
    """For each example: gate logits, passage and pair logits, and tag counts.

    The counts are [4, 3]: tokens that are right, marked, and truly so, by tag.
    """
    clarifier.eval()
    device = clarifier.tags.weight.device
    size = size if device.type == "cpu" else 4 * size
    result = [None] * len(examples)
    order = sorted(range(len(examples)), key=lambda i: examples[i].tokens)
    for at in range(0, len(order), size):
        chosen = order[at : at + size]
        batch = model.collate([examples[i] for i in chosen])
        out = model.Output(*(t.float().cpu() for t in vars(clarifier(batch.to(device), dtype)).values()))
        for row, i in enumerate(chosen):
            n = len(examples[i].answers)
            joint = batch.segment[row] >= 1
            said, true = out.tags[row][joint] > 0, batch.tags[row][joint]
            said = said & ~torch.isnan(true)
            true = true == 1
            result[i] = {
                "gate1": out.gate1[row].item(),
                "gate2": out.gate2[row].item() if n else math.nan,
                "passage": out.passage[row, :n].numpy(),
                "pair": out.pair[row, :n, :n].numpy(),
                "tags": torch.stack([(said & true).sum(0), said.sum(0), true.sum(0)], -1).numpy(),
            }
    return result


def threshold_for(labels, scores, over: float) -> float:
    """The lowest threshold with at most this share of clear cases above it."""
    clear = np.sort(scores[labels == 0])[::-1]
    allowed = int(over * len(clear))
    return float(clear[allowed]) if allowed < len(clear) else -math.inf


def gate_figures(labels, scores, groups, threshold: float = 0.0) -> dict:
    """Figures of one gate; a case is asked about when its score is above the threshold."""
    labels, scores = np.asarray(labels, float), np.asarray(scores, float)
    known = ~np.isnan(labels) & ~np.isnan(scores)
    labels, scores = labels[known], scores[known]
    groups = [g for g, k in zip(groups, known) if k]
    asked = scores > threshold
    hits = (asked & (labels == 1)).sum()
    by_group: dict[str, list] = {}
    for g, label, score in zip(groups, labels, scores):
        by_group.setdefault(g, []).append((label, score))
    ordered = [a > c for v in by_group.values() for l, a in v if l == 1 for k, c in v if k == 0]
    strict = threshold_for(labels, scores, 0.03)
    return {
        "cases": len(labels), "asking": int(labels.sum()),
        "auc": float(roc_auc_score(labels, scores)) if len(set(labels)) == 2 else math.nan,
        "accuracy": float((asked == labels).mean()) if len(labels) else math.nan,
        "precision": float(hits / asked.sum()) if asked.any() else math.nan,
        "recall": float(hits / labels.sum()) if labels.any() else math.nan,
        "over_asking": float(asked[labels == 0].mean()) if (labels == 0).any() else math.nan,
        "recall_at_3": float((scores[labels == 1] > strict).mean()) if labels.any() else math.nan,
        "order": float(np.mean(ordered)) if ordered else math.nan,
    }


def auc(targets, scores) -> float:
    targets, scores = np.asarray(targets, float), np.asarray(scores, float)
    known = ~np.isnan(targets)
    return float(roc_auc_score(targets[known], scores[known])) if len(set(targets[known])) == 2 \
        else math.nan


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def measure(clarifier, tokenizer, cases, dtype=torch.float32) -> dict:
    """All figures on these cases at the natural threshold 0."""
    examples = [data.example(tokenizer, c) for c in cases]
    found = predict(clarifier, examples, dtype)
    groups = [e.group for e in examples]
    result = {
        "gate1": gate_figures([e.pre for e in examples], [f["gate1"] for f in found], groups),
        "gate2": gate_figures([e.post for e in examples], [f["gate2"] for f in found], groups),
    }
    right, said, true = sum(f["tags"] for f in found).T
    result["tag_f1"] = {t: float(2 * right[k] / max(1, said[k] + true[k]))
                        for k, t in enumerate(data.TAGS)}
    for k, name in enumerate(("answers", "live")):
        result[name + "_auc"] = auc([x for e in examples for x in getattr(e, name)],
                                    [x for f in found for x in f["passage"][:, k]])
    upper = [np.triu_indices(len(e.answers), 1) for e in examples]
    result["pair_auc"] = auc(np.concatenate([e.conflict[u] for e, u in zip(examples, upper)]),
                             np.concatenate([f["pair"][u] for f, u in zip(found, upper)]))
    return rounded(result)


def rows_of(cases, examples, found) -> list[dict]:
    """Predictions as they are committed: a line a case."""
    return [{"id": c["id"], "group": e.group, "domain": c["domain"], "kind": c["kind"],
             "gate1": round(f["gate1"], 4),
             "gate2": None if math.isnan(f["gate2"]) else round(f["gate2"], 4),
             "pre": None if math.isnan(e.pre) else int(e.pre),
             "post": None if math.isnan(e.post) else int(e.post)}
            for c, e, f in zip(cases, examples, found)]


def figures_of(rows: list[dict], gate: str, threshold: float) -> dict:
    logit, label = {"pre": ("gate1", "pre"), "post": ("gate2", "post")}[gate]
    value = [math.nan if r[logit] is None else r[logit] for r in rows]
    truth = [math.nan if r[label] is None else r[label] for r in rows]
    return rounded(gate_figures(truth, value, [r["group"] for r in rows], threshold))


def report(predictions: str, over: float = 0.03) -> list[dict]:
    """Figures of committed predictions: by split and gate, at the natural threshold
    and at the one that keeps over-asking on validation within `over`; by kind."""
    splits = {s: data.read_jsonl(os.path.join(predictions, s + ".jsonl"))
              for s in ("validation", "test")}
    lines = []
    for gate, logit, label in (("pre", "gate1", "pre"), ("post", "gate2", "post")):
        known = [r for r in splits["validation"] if r[label] is not None]
        strict = threshold_for(np.array([r[label] for r in known]),
                               np.array([r[logit] for r in known]), over)
        for split, rows in splits.items():
            for name, threshold in (("natural", 0.0), ("strict", strict)):
                lines.append({"gate": gate, "split": split, "threshold": name,
                              "at": round(threshold, 3), **figures_of(rows, gate, threshold)})
            for kind in sorted({r["kind"] for r in rows}):
                mine = [r for r in rows if r["kind"] == kind and r[label] is not None]
                if mine:
                    lines.append({"gate": gate, "split": split, "kind": kind, "cases": len(mine),
                                  "asking": sum(r[label] for r in mine),
                                  **{f"right_{n}": round(float(np.mean(
                                      [(r[logit] > t) == r[label] for r in mine])), 3)
                                     for n, t in (("natural", 0.0), ("strict", strict))}})
    public = os.path.join(predictions, "public.jsonl")
    for row in data.read_jsonl(public) if os.path.exists(public) else []:
        figures = gate_figures(row["labels"], row["logits"], range(len(row["labels"])))
        lines.append({"gate": row["gate"], "split": row["set"], "threshold": "natural", **rounded(figures)})
    return lines


def main() -> None:
    """python evaluate.py --base BASE --adapter ADAPTER [--public DIR] --out predictions

    Writes the predictions of the exported adapter (float32) on validation and
    test, and on the held-out parts of the public sets, and prints the figures.
    Without --base it prints the figures of the predictions that are there.
    """
    import export  # here, since export needs no evaluation

    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", help="folder of the base model (Hugging Face form)")
    ap.add_argument("--adapter", default=os.path.join(HERE, "..", "gate", "lora", "adapter"))
    ap.add_argument("--data", default=os.path.join(HERE, "data"))
    ap.add_argument("--public", help="folder of the public sets")
    ap.add_argument("--out", default=os.path.join(HERE, "predictions"))
    args = ap.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if args.base:
        tokenizer = data.load_tokenizer(args.base)
        clarifier = export.load_exported(args.base, args.adapter).to(model.best_device())
        sets = {s: data.read_jsonl(f"{args.data}/{s}.jsonl") for s in ("validation", "test")}
        os.makedirs(args.out, exist_ok=True)
        for name, cases in sets.items():
            examples = [data.example(tokenizer, c) for c in cases]
            found = predict(clarifier, examples)
            with open(os.path.join(args.out, name + ".jsonl"), "w", encoding="utf-8") as file:
                for row in rows_of(cases, examples, found):
                    print(json.dumps(row, ensure_ascii=False), file=file)
        if args.public:  # labels and logits alone: their texts and ids are not ours to publish
            with open(os.path.join(args.out, "public.jsonl"), "w", encoding="utf-8") as file:
                for name, cases in data.public_sets(args.public, True).items():
                    examples = [data.example(tokenizer, c) for c in cases[:PUBLIC_CASES]]
                    found = predict(clarifier, examples)
                    gate, logit = ("post", "gate2") if name in data.GATE2_SETS else ("pre", "gate1")
                    print(json.dumps({"set": name, "gate": gate, "labels": [int(getattr(e, gate)) for e in examples],
                                      "logits": [round(f[logit], 4) for f in found]}), file=file)
    for line in report(args.out):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
