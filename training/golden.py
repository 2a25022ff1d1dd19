"""Writes golden outputs of an exported adapter, computed in float32.

    python golden.py --base BASE --adapter ../gate/lora/adapter --out ../gate/lora/testdata/golden.jsonl

Each line is a validation case: the case, its segments' token ids and types,
the logits of both gates, of its passages (answers, live) and of its pairs
(i < j), and the tags' probabilities: for gate 1 of segment 0 read alone, for
gate 2 of every segment read together.
"""

import argparse
import json
import os

import torch

import data
import export
import model

HERE = os.path.dirname(os.path.abspath(__file__))


def digits(values, n: int):
    return [round(float(v), n) for v in values]


def choose(cases: list[dict], count: int) -> list[dict]:
    """Cases of both labels, with 2 to 6 passages, short and long dialogues, and
    some text outside ASCII."""
    chosen = []

    def take(these, n):
        chosen.extend([c for c in these if c not in chosen][:n])

    for passages in (2, 3, 4, 5, 6):
        for post in (0, 1):
            take([c for c in cases if len(c["passages"]) == passages and c["post"] == post], 1)
    take(sorted(cases, key=lambda c: -sum(len(t["text"]) for t in c["history"])), 4)
    take([c for c in cases if not c["history"]], 2)
    take([c for c in cases if c["pre"] == 1], 3)
    take([c for c in cases if not json.dumps(c, ensure_ascii=False).isascii()], 4)
    take([c for c in cases if len(c["question"]) < 15], count)
    return chosen[:count]


def changed(case: dict) -> dict:
    """A case with what real text holds: other scripts, emoji, special tokens as text."""
    case = json.loads(json.dumps(case))
    case["id"] += "-unicode"
    case["question"] = "[MASK] Wie groß ist das 价格 für naïve café ☕ [SEP] " + case["question"]
    case["passages"][0]["title"] = ""
    case["passages"][1]["text"] += " [CLS] ﬁn\u00adal\u200b Ελληνικά 🚀 e\u0301"
    return case


@torch.no_grad()
def golden(clarifier, tokenizer, case: dict) -> dict:
    ex = data.example(tokenizer, case)
    batch = model.collate([ex])
    out = clarifier(batch)
    tags = torch.sigmoid(out.tags[0])
    n = len(ex.answers)

    def of_segment(s: int):
        return [digits(row, 5) for row in tags[batch.segment[0] == s]]

    return {
        "id": case["id"], "history": case["history"], "question": case["question"],
        "passages": [{k: p[k] for k in ("id", "title", "text")} for p in case["passages"]],
        "segments": [{"ids": s.ids, "types": s.types} for s in ex.segments],
        "gate1": round(out.gate1[0].item(), 5), "gate2": round(out.gate2[0].item(), 5),
        "passage": [digits(row, 5) for row in out.passage[0, :n]],
        "pair": [[i, j, round(out.pair[0, i, j].item(), 5)]
                 for i in range(n) for j in range(i + 1, n)],
        "tags1": of_segment(0),
        "tags2": [of_segment(1 + s) for s in range(n + 1)],
    }


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True)
    ap.add_argument("--adapter", required=True)
    ap.add_argument("--cases", default=os.path.join(HERE, "data", "validation.jsonl"))
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=25)
    args = ap.parse_args()
    torch.set_num_threads(1)
    tokenizer = data.load_tokenizer(args.base)
    clarifier = export.load_exported(args.base, args.adapter)
    cases = choose(data.read_jsonl(args.cases), args.count - 1)
    cases.append(changed(cases[4]))
    with open(args.out, "w", encoding="utf-8") as file:
        for case in cases:
            print(json.dumps(golden(clarifier, tokenizer, case), ensure_ascii=False), file=file)


if __name__ == "__main__":
    main()
