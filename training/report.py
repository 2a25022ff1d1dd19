"""Writes the tables of README.md from committed predictions.

    python report.py                  # rewrites the tables between the markers
    python report.py --check          # fails if they would change

Reads predictions/: program-{validation,test}.jsonl, what the program decides
(`askback eval --predictions`); {validation,test}.jsonl and public.jsonl, the
model's own logits (`evaluate.py`); runs.jsonl, one line a training run that the
learning curve and the ablations compare; baselines.jsonl (`baselines.py`).
Confidence intervals are 95 %, from 1,000 samples of contrastive groups with
replacement. Needs numpy and scikit-learn.
"""

import argparse
import json
import os
import re
import sys

import numpy as np
from sklearn.metrics import roc_auc_score

HERE = os.path.dirname(os.path.abspath(__file__))
PREDICTIONS = os.path.join(HERE, "predictions")
GATES = {"pre": "1", "post": "2"}
SAMPLES = 1000


def read(name: str) -> list[dict]:
    path = os.path.join(PREDICTIONS, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def cases(split: str) -> dict[str, dict]:
    with open(os.path.join(HERE, "data", split + ".jsonl"), encoding="utf-8") as file:
        return {c["id"]: c for c in map(json.loads, file)}


# --- figures ----------------------------------------------------------------


def calibration_error(y, p, bins=10) -> float:
    which = np.minimum((p * bins).astype(int), bins - 1)
    return sum(abs((p - y)[which == b].sum()) for b in range(bins)) / len(y)


def figures(y, asked, score) -> dict:
    """Of labels, decisions and scores, all arrays."""
    hits = (asked & (y == 1)).sum()
    precision = hits / asked.sum() if asked.any() else np.nan
    recall = hits / (y == 1).sum() if (y == 1).any() else np.nan
    return {
        "accuracy": (asked == y).mean(),
        "precision": precision,
        "recall": recall,
        "F1": 2 * precision * recall / (precision + recall) if hits else np.nan,
        "over-asking": asked[y == 0].mean() if (y == 0).any() else np.nan,
        "AUC": roc_auc_score(y, score) if 0 < y.mean() < 1 else np.nan,
    }


def intervals(y, asked, score, groups) -> dict[str, tuple[float, float]]:
    draw = np.random.default_rng(0)
    members = {}
    for i, g in enumerate(groups):
        members.setdefault(g, []).append(i)
    lists = [np.array(m) for m in members.values()]
    samples: dict[str, list[float]] = {}
    for _ in range(SAMPLES):
        chosen = np.concatenate([lists[k] for k in draw.integers(len(lists), size=len(lists))])
        for name, value in figures(y[chosen], asked[chosen], score[chosen]).items():
            samples.setdefault(name, []).append(value)
    return {n: tuple(np.nanquantile(v, (0.025, 0.975))) for n, v in samples.items()}


def options(rows: list[dict]) -> tuple[float, float, int]:
    """Precision and recall of given options, and over how many cases."""
    given = fitting = wanted = count = 0
    for r in rows:
        readings = [set(o["passages"]) for o in r.get("readings") or [] if o.get("passages")]
        if not (r["asked"] and r["label"] == 1 and r["options"] and readings):
            continue
        count += 1
        given += len(r["options"])
        wanted += len(readings)
        for o in r["options"]:
            k = next((k for k, ids in enumerate(readings) if ids & set(o.get("passages") or [])), None)
            if k is not None:
                readings.pop(k)
                fitting += 1
    return (fitting / given if given else np.nan), (fitting / wanted if wanted else np.nan), count


# --- tables -----------------------------------------------------------------


def number(value) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.3f}".replace("0.", ".", 1) \
        if 0 <= value < 1 else f"{value:.3f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(r) + " |" for r in rows])


def arrays(rows: list[dict]):
    return (np.array([r["label"] for r in rows]), np.array([r["asked"] for r in rows]),
            np.array([r["score"] for r in rows]))


def program() -> str:
    """What the program decides, by gate and split."""
    head = ["gate", "split", "cases (asking)", "accuracy", "precision", "recall", "F1", "over-asking",
            "AUC", "calibration error", "option precision", "option recall (cases)"]
    out = []
    for gate, number_of in GATES.items():
        for split in ("validation", "test"):
            of = cases(split)
            rows = [r for r in read(f"program-{split}.jsonl") if r["gate"] == gate]
            if not rows:
                continue
            y, asked, score = arrays(rows)
            f = figures(y, asked, score)
            wide = intervals(y, asked, score, [of[r["id"]]["group"] for r in rows]) if split == "test" else {}
            shown = [number(v) + (f" ({number(wide[n][0])} to {number(wide[n][1])})" if n in wide else "")
                     for n, v in f.items()]
            precision, recall, count = options(rows)
            out.append([number_of, split, f"{len(rows)} ({int(y.sum())})", *shown,
                        number(calibration_error(y, score)), number(precision), f"{number(recall)} ({count})"])
    return table(head, out)


def kinds() -> str:
    head = ["kind", "gate 1: cases (asking)", "right", "gate 2: cases (asking)", "right"]
    of = {g: {} for g in GATES}
    for r in read("program-test.jsonl"):
        of[r["gate"]].setdefault(r["kind"], []).append(r)
    names = sorted(set(of["pre"]) | set(of["post"]),
                   key=lambda k: (-sum(r["label"] for r in of["post"].get(k, [])) > -1, k))
    out = []
    for kind in names:
        row = [kind]
        for gate in GATES:
            rows = of[gate].get(kind, [])
            if not rows:
                row += ["–", "–"]
                continue
            row += [f"{len(rows)} ({sum(r['label'] for r in rows)})",
                    number(np.mean([r["asked"] == (r["label"] == 1) for r in rows]))]
        out.append(row)
    return table(head, out)


def domains() -> str:
    of = cases("test")
    found: dict[str, dict[str, list]] = {}
    for r in read("program-test.jsonl"):
        found.setdefault(of[r["id"]]["domain"], {}).setdefault(r["gate"], []).append(r)
    head = ["domain", "gate 1 accuracy", "over-asking", "gate 2 accuracy", "over-asking", "AUC"]
    out = []
    for domain, gates in sorted(found.items()):
        row = [domain]
        for gate in GATES:
            f = figures(*arrays(gates[gate]))
            row += [number(f["accuracy"]), number(f["over-asking"])] + ([number(f["AUC"])] if gate == "post" else [])
        out.append(row)
    return table(head, out)


def model() -> str:
    """The model's own logit, above 0, against what a case's surface gives away."""
    head = ["gate", "", "split", "cases (asking)", "AUC", "accuracy", "precision", "recall", "over-asking"]
    out = []
    for gate, number_of in GATES.items():
        logit = "gate" + number_of
        for split in ("validation", "test"):
            rows = [r for r in read(split + ".jsonl") if r[gate] is not None and r[logit] is not None]
            if not rows:
                continue
            y, score = np.array([r[gate] for r in rows]), np.array([r[logit] for r in rows])
            f = figures(y, score > 0, score)
            out.append([number_of, "model, logit > 0", split, f"{len(rows)} ({int(y.sum())})",
                        *(number(f[n]) for n in ("AUC", "accuracy", "precision", "recall", "over-asking"))])
        for b in read("baselines.jsonl"):
            if b["gate"] == gate and b["split"] == "test":
                out.append([number_of, b["baseline"], "test", f"{b['cases']} ({b['asking']})",
                            *(number(b[n]) for n in ("auc", "accuracy", "precision", "recall", "over_asking"))])
    return table(head, out)


# What others report on these sets: another split and another task, so beside, not against.
PUBLISHED = {
    "abg_coqa_val": "GPT-4o: recall .154 of ambiguous, .956 of clear",
    "pacific_part": "fine-tuned: F1 .869",
}


def public() -> str:
    """The held-out parts of the public sets: the model's own logit, above 0."""
    head = ["set", "gate", "cases (asking)", "AUC", "accuracy", "recall", "F1", "over-asking",
            "trained on that set, AUC: question words", "lengths and counts", "published"]
    own = {(b["split"], b["baseline"].split(",")[0]): b["auc"] for b in read("baselines.jsonl")
           if not b["baseline"].endswith("naive Bayes")}
    out = []
    for row in sorted(read("public.jsonl"), key=lambda r: (GATES[r["gate"]], r["set"])):
        name, y, score = row["set"], np.array(row["labels"]), np.array(row["logits"])
        f = figures(y, score > 0, score)
        out.append([name, GATES[row["gate"]], f"{len(y)} ({y.sum()})",
                    *(number(f[n]) for n in ("AUC", "accuracy", "recall", "F1", "over-asking")),
                    *(number(own.get((name, b))) for b in ("question words", "lengths and counts")),
                    PUBLISHED.get(name, "–")])
    return table(head, out)


def runs(part: str) -> str:
    """Training runs, judged on validation by the model's logit after their last epoch: the
    stages of the committed adapter, or the runs from nothing that differ in one thing."""
    head = ["run", "written cases", "composed cases", "public", "epochs", "minutes", "gate 1 AUC", "gate 2 AUC",
            "answers", "live", "pairs", "composed, scenes not seen"]
    rows = [[r["name"], str(r["written"]), str(r["composed"]), "yes" if r["public"] else "no", str(r["epochs"]),
             f"{r['minutes']:.0f}", number(r["gate1"]), number(r["gate2"]), number(r["answers"]),
             number(r["live"]), number(r["pair"]), number(r.get("scenes"))]
            for r in read("runs.jsonl") if r["part"] == part]
    return table(head, rows) if rows else "None yet."


TABLES = {"program": program, "kinds": kinds, "domains": domains, "model": model, "public": public,
          "stages": lambda: runs("stages"), "curve": lambda: runs("curve")}


def rewritten(text: str) -> str:
    for name, make in TABLES.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        if mark.search(text):
            text = mark.sub(lambda m: m[1] + make() + "\n" + m[2], text)
    return text


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--check", action="store_true", help="fail if a table would change")
    args = ap.parse_args()
    stale = False
    for path in (os.path.join(HERE, "README.md"), os.path.join(HERE, "..", "README.md")):
        with open(path, encoding="utf-8") as file:
            old = file.read()
        new = rewritten(old)
        stale |= new != old
        if new != old and not args.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    if args.check and stale:
        sys.exit("the tables are older than the predictions: run python report.py")


if __name__ == "__main__":
    main()
