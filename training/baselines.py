"""Baselines that do not read a case as a whole: what its surface gives away.

    python baselines.py [--public DIR]

Logistic regression on the question's words, on all words of the dialogue, and
on lengths and counts, trained on the same examples as the clarifier and judged
on the same cases.
"""

import argparse
import json
import math
import os

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import data
import evaluate

HERE = os.path.dirname(os.path.abspath(__file__))


def question(case):
    return case["question"]


def dialogue(case):
    return " ".join(t["text"] for t in case["history"]) + " " + case["question"]


def counts(case):
    words = [len(p["text"].split()) for p in case["passages"]] or [0]
    return [len(case["question"].split()), len(case["history"]), len(dialogue(case).split()),
            len(case["passages"]), sum(words), max(words), case["question"].count("?")]


def word_model(classifier):
    return make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True,
                                         token_pattern=r"(?u)\b\w+\b|\?"), classifier)


BASELINES = {
    "question words, logistic regression":
        (question, lambda: word_model(LogisticRegression(C=3, max_iter=2000))),
    "question words, naive Bayes": (question, lambda: word_model(MultinomialNB(alpha=0.3))),
    "dialogue words, logistic regression":
        (dialogue, lambda: word_model(LogisticRegression(C=3, max_iter=2000))),
    "lengths and counts, logistic regression":
        (counts, lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))),
}


def labelled(cases, gate):
    pairs = [(data.normalised(c), data.gate_label(c, gate)) for c in cases]
    pairs = [(c, y) for c, y in pairs if not math.isnan(y)]
    return [c for c, _ in pairs], np.array([y for _, y in pairs])


def run(train, judged, gate: str) -> dict:
    """Figures of every baseline on `judged`, a dict of named lists of cases."""
    cases, labels = labelled(train, gate)
    result = {}
    for name, (view, make) in BASELINES.items():
        if len(set(labels)) < 2:
            continue
        fitted = make().fit([view(c) for c in cases], labels)
        for split, others in judged.items():
            chosen, truth = labelled(others, gate)
            if len(set(truth)) < 2:
                continue
            p = fitted.predict_proba([view(c) for c in chosen])[:, 1]
            result.setdefault(split, {})[name] = evaluate.rounded(evaluate.gate_figures(
                truth, p, [c["group"] for c in chosen], threshold=0.5))
    return result


def line(**fields) -> str:
    """A line of the report; what a figure has no value for is null."""
    return json.dumps({k: None if isinstance(v, float) and math.isnan(v) else v for k, v in fields.items()})


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--data", default=os.path.join(HERE, "data"))
    ap.add_argument("--public", help="folder of the public sets: also each set's own baselines")
    args = ap.parse_args()
    splits = {s: data.read_jsonl(f"{args.data}/{s}.jsonl") for s in ("train", "validation", "test")}
    judged = {s: splits[s] for s in ("validation", "test")}
    for gate in ("pre", "post"):
        for split, figures in run(splits["train"], judged, gate).items():
            for name, f in figures.items():
                print(line(gate=gate, split=split, baseline=name, **f))
    if args.public:
        train, held = (data.public_sets(args.public, h) for h in (False, True))
        for name in data.GATE2_SETS:
            judged = {name: held[name][: evaluate.PUBLIC_CASES]}
            for figures in run(train[name], judged, "post").values():
                for baseline, f in figures.items():
                    print(line(gate="post", split=name, baseline=baseline, **f))


if __name__ == "__main__":
    main()
