"""Fits the reader's decision to replies that its heads were not trained on.

    go run ../../replies/rules natural.jsonl hard.jsonl more.jsonl > RULES
    python decision.py --rules RULES --folds RUN/fold.jsonl ... [--out ../../conversation/reply/adapter]

The folds are what train.py --fold wrote. It prints the figures of the decision, fitted
in five parts by clarification, so that no reply was used to fit what reads it.
"""

import argparse
import json
import os

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import train
from train import KINDS, MISSING, data

RULES = ["text", "all", "question", "detail", "similarity", "none", "none, with a detail", "explain", "between",
         "phrase", "cancel", "proposal", "says nothing"]
OPTION = ["logit", "chosen by the rules", "the rules' choice", "by similarity", "ruled out by the rules"]
KIND = [f"log {k}" for k in KINDS] + [f"rules: {k}" for k in KINDS] + [f"by {r}" for r in RULES] + [
    "first option", "second option", "asks", "no options", "short", "long", "the rules' choice alone"]
CHOOSE = 0.3  # the least probability of an option that is chosen; below, the words are kept as a detail
# What a reply counts in the fit: details are that much more frequent in a help chat than in
# all files, and wide.jsonl would outweigh the others.
DETAILS, WIDE = 1.7, 0.2
CERTAIN = {"word for word", "ordinal", "range", "comparison", "proposal", "now", "yes", "no", "yes or no",
           "yes to several", "no such option", "cancel", "restated"}


def ids(options) -> set[str]:
    return {o["id"] for o in options or []}


def option_features(logit, option, rules) -> list[float]:
    chosen = option["id"] in ids(rules.get("chosen"))
    alone = chosen and rules["kind"] == "choice"
    return [logit, chosen, alone, alone and rules["rule"] == "similarity", option["id"] in ids(rules.get("excluded"))]


def kind_features(case, rules, logits, meant) -> list[float]:
    p = np.exp(np.array(logits) - max(logits))
    two = sorted([*meant, MISSING, MISSING], reverse=True)
    n = len(case["reply"].split())
    return [*np.log(np.maximum(p / p.sum(), 1e-6)), *(rules["kind"] == k for k in KINDS), *(rules["rule"] == r for r in RULES),
            *(max(MISSING, v) for v in two[:2]), "?" in case["reply"] or "？" in case["reply"],
            not case["pending"].get("options"), n <= 3, n > 8, rules["kind"] == "choice" and not rules.get("detail")]


def possible(kind, n) -> bool:
    return {"choice": n > 0, "none": n > 0, "all": n > 1, "several": n > 2}.get(kind, True)


def corrected(x, y, counts, c):
    """Weights and biases: what the heads say, and what the other features add to it.

    The penalty is on the difference from the heads' own logits."""
    x, y, counts = torch.tensor(x, dtype=torch.double), torch.tensor(y), torch.tensor(counts, dtype=torch.double)
    mean, scale = x.mean(0), x.std(0).clamp(min=0.05)
    n = len(KINDS)
    own = x[:, :n]
    w = torch.zeros(n, x.shape[1], dtype=torch.double, requires_grad=True)
    b = torch.zeros(n, dtype=torch.double, requires_grad=True)
    warm = torch.ones(1, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, b, warm], max_iter=200, line_search_fn="strong_wolfe")

    def step():
        optimizer.zero_grad()
        z = warm * own + (x - mean) / scale @ w.T + b
        value = (counts * torch.nn.functional.cross_entropy(z, y, reduction="none")).sum()
        value = value + ((w**2).sum() + 0.1 * (b**2).sum()) / (2 * c)
        value.backward()
        return value

    optimizer.step(step)
    with torch.no_grad():
        weights = w / scale
        bias = b - weights @ mean
        weights[:, :n] += warm * torch.eye(n, dtype=torch.double)
    return weights.numpy(), bias.numpy()


class Decision:
    """A regression over the options and one over the kinds."""

    def __init__(self, rows, c):
        x, y = [], []
        for case, rules, kind, meant in rows:
            if case["kind"] in {"choice", "several", "all", "none", "detail", "unclear_choice"}:
                for o, m in zip(case["pending"].get("options") or [], meant):
                    x.append(option_features(m, o, rules))
                    y.append(o["id"] in (case.get("chosen") or []))
        self.option = LogisticRegression(C=1).fit(np.array(x, float), y)
        x = np.array([kind_features(k, r, l, self.meant(k, r, m)) for k, r, l, m in rows], float)
        y = np.array([KINDS.index(r[0]["kind"]) for r in rows])
        counts = [(DETAILS if r[0]["kind"] == "detail" else 1) * (WIDE if r[0]["bank"] == "wide" else 1) for r in rows]
        self.w, self.b = corrected(x, y, counts, c)

    def meant(self, case, rules, meant) -> list[float]:
        options = case["pending"].get("options") or []
        if not meant:
            return []
        x = np.array([option_features(m, o, rules) for o, m in zip(options, meant)], float)
        return list(self.option.decision_function(x))

    def __call__(self, case, rules, kind, meant):
        """The options' log-odds and the kinds' probabilities."""
        meant = self.meant(case, rules, meant)
        z = self.w @ np.array(kind_features(case, rules, kind, meant), float) + self.b
        n = len(case["pending"].get("options") or [])
        z = np.array([v if possible(k, n) else -np.inf for k, v in zip(KINDS, z)])
        p = np.exp(z - z.max())
        p /= p.sum()
        return meant, p / p.sum()


def certain(rules) -> bool:
    return rules["rule"] in CERTAIN or rules["kind"] == "dont_know"


def decided(case, rules, meant, share, aside, topic):
    """The kind, and the option chosen."""
    if certain(rules):
        return rules["kind"], [o["id"] for o in rules.get("chosen") or []]
    new = share[KINDS.index("new_question")]
    kind = KINDS[int(np.argmax(share))]
    if kind == "new_question" and new < topic or kind != "new_question" and new >= aside:
        return "unclear_choice", []
    options = case["pending"].get("options") or []
    if kind == "choice" and 1 / (1 + np.exp(-max(meant))) < CHOOSE:
        kind = "detail"
    return kind, [options[int(np.argmax(meant))]["id"]] if kind == "choice" else None


def figures(rows, results, aside, topic, show=False) -> None:
    t = {}
    for (case, rules, _, _), (meant, share) in zip(rows, results):
        kind, chosen = decided(case, rules, meant, share, aside, topic)
        found = train.readings(case)
        ok = kind in [f[0] for f in found]
        right = ok and (kind != "choice" or chosen in [f[1] for f in found if f[0] == "choice"])
        new = case["kind"] == "new_question"
        again = kind == "unclear_choice" and not ok
        for name in (case["bank"], "total") + ((case["kind"],) if show else ()):
            r = t.setdefault(name, np.zeros(8, int))
            r += [1, ok, right, new, new and not ok and not again, new and again, not new and not ok and kind == "new_question",
                  not new and again]
    for name, r in t.items():
        print(f"  {name:15s} n {r[0]:4d}  kind {100 * r[1] / r[0]:5.1f}  and option {100 * r[2] / r[0]:5.1f}  "
              f"topics {r[3]}: swallowed {r[4]}, asked again {r[5]};  answers {r[0] - r[3]}: taken {r[6]}, asked again {r[7]}")


def fitted(rows, part, c):
    """What the decision says of each row, fitted to the other parts."""
    results = [None] * len(rows)
    for k in range(5):
        d = Decision([r for r, q in zip(rows, part) if q != k and not certain(r[1])], c)
        for i in np.flatnonzero(part == k):
            results[i] = d(*rows[i])
    return results


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--rules", required=True)
    ap.add_argument("--folds", nargs="+", required=True)
    ap.add_argument("--out", help="folder of the adapter, whose reply.json receives the decision")
    ap.add_argument("--c", type=float, default=0.01, help="inverse strength of the prior on the weights")
    ap.add_argument("--aside", type=float, default=0.2)
    ap.add_argument("--topic", type=float, default=0.5)
    ap.add_argument("--sure", type=float, default=0.7)
    ap.add_argument("--scan", action="store_true")
    args = ap.parse_args()
    rules = {r["id"]: r["matched"] for r in data.read_jsonl(args.rules)}
    read = {(r["bank"], r["id"]): r for f in args.folds for r in data.read_jsonl(f)}
    rows = [(c, rules[c["id"]], read[c["bank"], c["id"]]["kind"], read[c["bank"], c["id"]]["meant"])
            for c in train.cases(train.OWN) if (c["bank"], c["id"]) in read]
    part = np.array([hash_of(c) for c, *_ in rows])
    unsure = [r for r in rows if not certain(r[1])]
    for c in (0.001, 0.003, 0.01, 0.03, 0.1) if args.scan else (args.c,):
        results = fitted(rows, part, c)
        print(f"c {c}")
        figures(rows, results, 2, 0, not args.scan)
    print("rules")
    figures([(c, dict(r, rule="word for word"), k, m) for c, r, k, m in rows], results, 2, 0)
    if args.scan:
        results = fitted(rows, part, args.c)
    for topic, aside in ((0, 2), (0.5, 0.3), (0.5, 0.25), (0.5, 0.2), (0.6, 0.25), (0.6, 0.2), (0.65, 0.15)) if args.scan else ((args.topic, args.aside),):
        print(f"topic {topic}, aside {aside}")
        figures(rows, results, aside, topic, not args.scan)
    if args.out:
        d = Decision(unsure, args.c)
        path = os.path.join(args.out, "reply.json")
        with open(path) as file:
            described = json.load(file)

        def short(values):
            return [round(float(v), 5) for v in values]

        described["decision"] = {
            "option": {"features": OPTION, "weights": short(d.option.coef_[0]), "bias": round(float(d.option.intercept_[0]), 5)},
            "kind": {"features": KIND, "weights": [short(w) for w in d.w], "bias": short(d.b)},
            "aside": args.aside, "topic": args.topic, "sure": args.sure, "choose": CHOOSE, "meant": 0.5}
        with open(path, "w") as file:
            json.dump(described, file, indent=1, ensure_ascii=False)
            file.write("\n")


def hash_of(case) -> int:
    """A part for fitting the decision, other than the folds of the heads."""
    import hashlib
    p = case["pending"]
    return hashlib.sha256(("decision" + p["question"] + p["text"]).encode()).digest()[0] % 5


if __name__ == "__main__":
    main()
