"""Widens cases to what a retriever gives: six passages.

    python training/widen.py training/data/validation.jsonl > wide.jsonl

A case has the passages that its writer chose, mostly three or four. A retriever
gives as many as it is asked for, and the rest of them is beside the point. So
each case gets passages of other groups of its domain until it has six, in a
random order; its labels stay as they are.
"""

import json
import random
import sys

WIDTH = 6


def main():
    cases = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
    by_domain = {}
    for case in cases:
        for passage in case["passages"]:
            by_domain.setdefault(case["domain"], {})[(case["group"], passage["title"])] = passage
    draw = random.Random(7)
    for case in cases:
        titles = {p["title"] for p in case["passages"]}
        others = [p for (group, title), p in by_domain[case["domain"]].items()
                  if group != case["group"] and title not in titles]
        draw.shuffle(others)
        extra = others[: max(0, WIDTH - len(case["passages"]))]
        extra = [dict(p, id=f"w{i}", answer="", condition="") for i, p in enumerate(extra)]
        case["passages"] = case["passages"] + extra
        draw.shuffle(case["passages"])
        case["id"] += "-wide"
        print(json.dumps(case, ensure_ascii=False))


if __name__ == "__main__":
    main()
