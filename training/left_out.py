"""Writes the demonstration of training on one's own cases: 200 cases of one domain.

    python left_out.py FOLDER

The domain is desks of finance, tax and statistics (writer wb), which the committed
adapter has not seen. FOLDER receives train.jsonl (200 cases of some organisations),
validation.jsonl (others) and test.jsonl: the organisations that stand in calibration,
all labelled twice. No organisation is in two of them.
"""

import json
import os
import random
import sys

import data

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 200


def split() -> dict[str, list[dict]]:
    domains: dict[str, list[dict]] = {}
    for case in data.read_jsonl(os.path.join(HERE, "data", "train.jsonl")):
        if case["writer"] == "wb":
            domains.setdefault(case["domain"], []).append(case)
    order = sorted(domains)
    random.Random(4).shuffle(order)
    parts = {"train": [], "validation": []}
    for name in order:
        parts["train" if len(parts["train"]) < COUNT else "validation"] += domains[name]
    parts["train"] = parts["train"][:COUNT]
    parts["test"] = [c for c in data.read_jsonl(os.path.join(HERE, "data", "calibration.jsonl"))
                     if c["writer"] == "wb"]
    return parts


def main() -> None:
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, cases in split().items():
        with open(os.path.join(folder, name + ".jsonl"), "w", encoding="utf-8") as file:
            for case in cases:
                print(json.dumps(case, ensure_ascii=False), file=file)


if __name__ == "__main__":
    main()
