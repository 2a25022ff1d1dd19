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


@torch.no_grad()
def predict(clarifier, examples, dtype=torch.float32, size: int = 16):
    """For each example: gate logits, passage and pair logits, and tag counts.

    The counts are [4, 3]: tokens that are right, marked, and truly so, by tag.
    """
    clarifier.eval()
    result = [None] * len(examples)
    order = sorted(range(len(examples)), key=lambda i: examples[i].tokens)
    for at in range(0, len(order), size):
        chosen = order[at : at + size]
        batch = model.collate([examples[i] for i in chosen])
        out = clarifier(batch, dtype)
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
