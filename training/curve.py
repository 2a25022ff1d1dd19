"""The learning curve, the bases and the ablations: each a training from nothing, in one go.

    python curve.py --base BASE --out OUT [--public DIR] [--other NAME=FOLDER ...] [--limit N]

BASE is the folder of the embedded base; --other names further ones (convert_base.py makes
them) and --public the folder of the public sets: without them their runs are left out. Run it
again and it goes on where it was stopped; a run that is done is not repeated. On a GPU it
trains several runs side by side, with bigger batches and as many more epochs as keep the steps.

OUT receives a folder a run, with the cases that it learnt from, its checkpoints and its log,
and runs.jsonl: a line a finished run, in the form of predictions/runs.jsonl. Smaller parts of
the data stand in the larger ones.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass

import data
import model

HERE = os.path.dirname(os.path.abspath(__file__))
ABLATION = 1000  # written cases that bases and ablations learn from
SCENES = sorted(glob.glob(os.path.join(HERE, "scenes", "*.jsonl")))
COMPOSED = 5200  # composed cases of the first stage
EASY = {"short-but-clear", "overview-or-comparison", "unanswerable", "smalltalk", "ellipsis-follow-up"}


@dataclass
class Run:
    folder: str
    name: str  # in the table
    epochs: int
    cases: list[dict]
    base: str = ""  # another base's folder
    public: bool = False
    composed: int = 0
    after: str = ""  # the run whose weights this one starts from


def subset(cases: list[dict], count: int) -> list[dict]:
    """Whole groups, in an order that does not depend on `count`, until there are so many cases."""
    groups: dict[str, list[dict]] = {}
    for case in cases:
        groups.setdefault(case["group"], []).append(case)
    names = sorted(groups)
    random.Random(3).shuffle(names)
    chosen: list[dict] = []
    for name in names:
        if len(chosen) >= count:
            break
        chosen += groups[name]
    return chosen


def easy(cases: list[dict], everything: list[dict]) -> list[dict]:
    """The asking cases, with clear ones of the plain kinds in place of the hard ones."""
    asking = [c for c in cases if c["pre"] == 1 or c["post"] == 1]
    ids = {c["id"] for c in cases}
    plain = [c for c in cases if c["kind"] in EASY]
    more = [c for c in everything if c["kind"] in EASY and c["id"] not in ids]
    random.Random(5).shuffle(more)
    return asking + (plain + more)[: len(cases) - len(asking)]


def planned(cases: list[dict], others: dict[str, str], public: bool) -> list[Run]:
    some = subset(cases, ABLATION)
    plan = [Run(str(n), "from nothing", epochs, subset(cases, n))
            for n, epochs in ((250, 4), (500, 4), (1000, 3), (2000, 2))]
    plan.append(Run("all", "from nothing", 1, cases))
    plan += [Run(name, "base " + name, 3, some, base=folder) for name, folder in others.items()]
    plan += [
        Run("no-marks", "without marks", 3, [dict(c, unmarked=True) for c in some]),
        Run("no-groups", "without groups", 3, [dict(c, group=c["id"]) for c in some]),
        Run("easy", "without hard negatives", 3, easy(some, cases)),
        Run("stage", "the composed stage alone", 1, [], composed=COMPOSED),
        Run("staged", "after the composed stage", 2, some, after="stage"),
    ]
    if public:
        plan.append(Run("public", "with the public sets", 3, some, public=True))
    return plan


def last_validation(log: str) -> dict | None:
    """The last epoch's line of a run's log."""
    lines = data.read_jsonl(log) if os.path.exists(log) else []
    found = [e for e in lines if "validation" in e]
    if not found:
        return None
    composed = [e["composed"] for e in lines if "composed" in e]
    return found[-1] | ({"composed": composed[-1]} if composed else {})


def line_of(run: Run, entry: dict) -> dict:
    v = entry["validation"]
    line = {"part": "curve", "name": run.name, "written": len(run.cases), "composed": run.composed, "public": run.public,
            "epochs": entry["epoch"], "minutes": round(entry["minutes"], 1), "gate1": v["gate1"]["auc"],
            "gate2": v["gate2"]["auc"], "answers": v["answers_auc"], "live": v["live_auc"], "pair": v["pair_auc"]}
    if "composed" in entry:
        line["scenes"] = entry["composed"]["gate2"]["auc"]
    return line


def train(run: Run, args, factor: int) -> None:
    """One run, to its end. Its train.py speaks to OUT/run/out."""
    folder = os.path.join(args.out, run.folder)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "train.jsonl"), "w", encoding="utf-8") as file:
        for case in run.cases:
            print(json.dumps(case, ensure_ascii=False), file=file)
    validation = os.path.join(folder, "validation.jsonl")
    if not os.path.exists(validation):
        os.symlink(os.path.join(HERE, "data", "validation.jsonl"), validation)
    command = [sys.executable, os.path.join(HERE, "train.py"), "--base", run.base or args.base, "--data", folder,
               "--out", folder, "--epochs", str(run.epochs * factor), "--minutes", str(args.minutes),
               "--seed", str(args.seed), "--resume"]
    if run.public:
        command += ["--public", args.public]
    if run.composed:
        command += ["--scenes", *SCENES, "--composed", str(min(run.composed, args.limit or run.composed))]
    if run.after:
        command += ["--init", os.path.join(args.out, run.after, "best.pt")]
    if args.limit:
        command += ["--limit", str(args.limit)]
    with open(os.path.join(folder, "out"), "a", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, stderr=out).returncode:
            raise SystemExit(f"{run.folder} failed: see {out.name}")
    open(os.path.join(folder, "done"), "w").close()


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="folder of the base model (Hugging Face form)")
    ap.add_argument("--out", required=True, help="folder of the runs")
    ap.add_argument("--public", help="folder of the public sets")
    ap.add_argument("--other", action="append", default=[], metavar="NAME=FOLDER", help="another base")
    ap.add_argument("--only", nargs="*", help="these runs alone, by folder")
    ap.add_argument("--jobs", type=int, help="runs side by side; 1 on a CPU, 4 on a GPU")
    ap.add_argument("--limit", type=int, default=0, help="cases of each run and of validation, to try the script")
    ap.add_argument("--minutes", type=float, default=150, help="time limit of a run")
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()
    gpu = model.best_device() != "cpu"
    cases = data.read_jsonl(os.path.join(HERE, "data", "train.jsonl"))
    plan = planned(cases, dict(o.split("=", 1) for o in args.other), bool(args.public))
    for run in plan:
        run.cases = run.cases[: args.limit or None]
    if args.only:
        plan = [r for r in plan if r.folder in args.only]

    def done(run: Run) -> bool:
        return os.path.exists(os.path.join(args.out, run.folder, "done"))

    with concurrent.futures.ThreadPoolExecutor(args.jobs or (4 if gpu else 1)) as pool:
        # In two rounds: what starts from another run's weights comes after it.
        for later in (False, True):
            todo = [r for r in plan if bool(r.after) == later and not done(r)]
            for _ in pool.map(lambda r: train(r, args, 2 if gpu else 1), todo):
                pass
    with open(os.path.join(args.out, "runs.jsonl"), "w", encoding="utf-8") as file:
        for run in plan:
            entry = last_validation(os.path.join(args.out, run.folder, "log.jsonl"))
            if done(run) and entry:
                print(json.dumps(line_of(run, entry)), file=file)


if __name__ == "__main__":
    main()
