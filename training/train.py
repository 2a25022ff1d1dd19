"""Trains the clarifier: LoRA on the encoder and its heads.

    python train.py --base BASE --out RUN [--scenes scenes/*.jsonl --composed 5000] [--public DIR] [--resume]

RUN receives log.jsonl (one line a report), last.pt (everything needed to go
on, every few minutes) and best.pt (the weights of the best epoch by the mean
of the two gates' AUC on the validation split).
"""

import argparse
import dataclasses
import functools
import json
import math
import os
import random
import time

import numpy as np
import torch

import compose
import data
import evaluate
import export
import model

HERE = os.path.dirname(os.path.abspath(__file__))

# Public examples in an epoch: from each set of gate 1, and of gate 2 for each label.
PUBLIC_GATE1 = 60
PUBLIC_GATE2 = {"claqua_dev": 60, "or_sharc_dev": 60, "abg_coqa_val": 40, "pacific_part": 30,
                "ramdocs_part": 20, "mtragun_dev": 8}


WIDENED = 0.2  # the share of our cases that an epoch gives more passages


def neighbours(cases: list[dict]) -> dict[str, dict]:
    """The passages of each domain, by group and title."""
    found: dict[str, dict] = {}
    for case in cases:
        for passage in case["passages"]:
            found.setdefault(case["domain"], {})[case["group"], passage["title"]] = passage
    return found


def widened(tokenizer, case: dict, ex: data.Example, passages: dict, rng) -> data.Example:
    """The example with passages of other groups of its domain up to five or six, as a
    retriever gives them; they answer nothing, so no label changes."""
    titles = {p["title"] for p in case["passages"]}
    others = [p for (group, title), p in passages.items()
              if group != case["group"] and title not in titles]
    extra = rng.sample(others, max(0, min(len(others), rng.choice((5, 6)) - len(titles))))
    parts = data.dialogue(tokenizer, case)
    segments = [data.passage_segment(tokenizer, *parts, dict(p, answer="", condition=""))
                for p in extra]
    n, k = len(ex.answers), len(extra)
    conflict = np.zeros((n + k, n + k), np.float32)
    conflict[:n, :n] = ex.conflict
    return dataclasses.replace(ex, segments=ex.segments + segments,
                               answers=ex.answers + [0.0] * k, live=ex.live + [0.0] * k,
                               conflict=conflict)


def composed(tokenizer, scenes: list[dict], count: int, rng) -> list[list[data.Example]]:
    """At least `count` examples composed from scenes, in contrastive groups.

    They teach gate 2. Of gate 1 they say nothing: what is too little to search for
    is a matter of the written cases' judgment."""
    units, total = [], 0
    while scenes and total < count:
        for scene in rng.sample(scenes, len(scenes)):
            group = [dataclasses.replace(data.example(tokenizer, c), pre=data.NAN)
                     for c in compose.group(scene, len(units), rng)]
            for ex in group:
                for segment in ex.segments:
                    segment.tags[:, data.UNCLEAR] = data.NAN
            units.append(group)
            total += len(group)
            if total >= count:
                break
    return units


def epoch_examples(own, public, narrowed, rng) -> list[list[data.Example]]:
    """One epoch's examples in units that stay in one batch: a contrastive group,
    or four public examples. A share `narrowed` of the asking cases comes with the
    passages of one reading alone."""
    groups: dict[str, list] = {}
    for case, ex, wider in own:
        narrow = data.one_reading(ex, case, rng) if narrowed and rng.random() < narrowed else ex
        if narrow is not ex:
            ex = narrow
        elif rng.random() < WIDENED:
            ex = wider(rng)
        groups.setdefault(ex.group, []).append(data.shuffled(ex, rng))
    units = list(groups.values())
    drawn = []
    for name, examples in public.items():
        if name in data.GATE1_SETS:
            drawn += rng.sample(examples, min(PUBLIC_GATE1, len(examples)))
            continue
        for label in (0, 1):
            those = [e for e in examples if e.post == label]
            drawn += rng.sample(those, min(PUBLIC_GATE2[name], len(those)))
    drawn.sort(key=lambda e: e.tokens)
    return units + [drawn[i : i + 4] for i in range(0, len(drawn), 4)]


def batches(units, size: int, rng) -> list[list[data.Example]]:
    """Batches of about `size` examples of similar length, in random order."""
    rng.shuffle(units)
    result = []
    for at in range(0, len(units), 64):
        chunk = sorted(units[at : at + 64], key=lambda u: max(e.tokens for e in u))
        batch = []
        for unit in chunk:
            batch += unit
            if len(batch) >= size:
                result.append(batch)
                batch = []
        if batch:
            result.append(batch)
    rng.shuffle(result)
    return result


def save(path: str, value) -> None:
    """Writes to a neighbour first, so that a killed run leaves the old file whole."""
    torch.save(value, path + ".new")
    os.replace(path + ".new", path)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="folder of the base model (Hugging Face form)")
    ap.add_argument("--out", required=True, help="folder of the run")
    ap.add_argument("--data", default=os.path.join(HERE, "data"))
    ap.add_argument("--public", help="folder of the public sets; without it they are left out")
    ap.add_argument("--scenes", nargs="*", default=[], help="files of scenes to compose cases from")
    ap.add_argument("--composed", type=int, default=0, help="composed cases in an epoch")
    ap.add_argument("--share", type=float, default=1, help="share of our written groups in an epoch")
    ap.add_argument("--narrowed", type=float, default=0,
                    help="share of asking cases that an epoch gives the passages of one reading alone")
    ap.add_argument("--init", help="what to start from: a folder of an exported adapter, or a best.pt "
                    "(weights whose shape does not fit are left out)")
    ap.add_argument("--resume", action="store_true", help="go on from the run's last.pt")
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--minutes", type=float, default=150, help="time limit; the decay ends with it")
    ap.add_argument("--lr", type=float, default=5e-4, help="of the LoRA; the heads' is twice it")
    ap.add_argument("--batch", type=int, help="cases in a batch; 8 on a CPU, 16 on a GPU")
    ap.add_argument("--limit", type=int, default=0, help="train on so many cases only, of each public set too")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--float32", action="store_true", help="no bfloat16")
    ap.add_argument("--device", help="cpu or cuda; a GPU where there is one")
    args = ap.parse_args()
    args.device = args.device or model.best_device()
    args.batch = args.batch or (8 if args.device == "cpu" else 16)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    dtype = torch.float32 if args.float32 else torch.bfloat16
    log_file = open(os.path.join(args.out, "log.jsonl"), "a", encoding="utf-8")

    def log(**entry) -> None:
        line = json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in entry.items()})
        print(line, flush=True)
        print(line, file=log_file, flush=True)

    tokenizer = data.load_tokenizer(args.base)
    cases = [data.normalised(c) for c in data.read_jsonl(f"{args.data}/train.jsonl")]
    cases = cases[: args.limit] if args.limit else cases
    passages = neighbours(cases)
    own = []
    for c in cases:
        ex = data.example(tokenizer, c)
        own.append((c, ex, functools.partial(widened, tokenizer, c, ex, passages[c["domain"]])
                    if c["passages"] else lambda rng, ex=ex: ex))
    validation = data.read_jsonl(f"{args.data}/validation.jsonl")
    if args.limit:
        validation = validation[: args.limit]
    public = {}
    if args.public:
        sets = data.public_sets(args.public, held_out=False)
        public = {n: [data.example(tokenizer, c) for c in cases[: args.limit or None]] for n, cases in sets.items()}

    scenes = compose.read(args.scenes)
    held_out = [s for s in scenes if compose.held_out(s)]
    scenes = [s for s in scenes if not compose.held_out(s)]
    draw = random.Random(11)
    composed_validation = [c for s in held_out for n in range(2) for c in compose.group(s, n, draw)]

    def units(rng):
        found = epoch_examples(own, public, args.narrowed, rng)
        if args.share < 1:
            found = rng.sample(found, round(args.share * len(found)))
        return found + composed(tokenizer, scenes, args.composed, rng)

    clarifier = model.Clarifier(args.base)
    if args.init and os.path.isdir(args.init):
        clarifier = export.load_exported(args.base, args.init)
    elif args.init:
        start = torch.load(args.init, weights_only=False, map_location="cpu")
        start = start.get("weights", start)
        own_shapes = {n: t.shape for n, t in clarifier.state_dict().items()}
        clarifier.load_state_dict(
            {n: t for n, t in start.items() if own_shapes.get(n) == t.shape}, strict=False)
    clarifier.to(args.device)
    optimizer = torch.optim.AdamW(
        [{"params": clarifier.lora_parameters(), "lr": args.lr},
         {"params": clarifier.head_parameters(), "lr": 2 * args.lr}], weight_decay=0.01)
    rates = [g["lr"] for g in optimizer.param_groups]
    steps = args.epochs * len(batches(units(random.Random(0)), args.batch, random.Random(0)))
    step, epoch0, batch0, spent, best = 0, 0, 0, 0.0, 0.0
    last = os.path.join(args.out, "last.pt")
    if args.resume and os.path.exists(last):
        state = torch.load(last, weights_only=False, map_location=args.device)
        clarifier.load_state_dict(state["weights"], strict=False)
        optimizer.load_state_dict(state["optimizer"])
        step, epoch0, batch0 = state["step"], state["epoch"], state["batch"]
        spent, best = state["spent"], state["best"]
        log(resumed=step)
    log(examples=len(own), scenes=len(scenes), public={n: len(v) for n, v in public.items()}, steps=steps,
        args=vars(args))

    started, saved = time.time() - spent, time.time()

    def progress() -> float:
        return max(step / steps, (time.time() - started) / 60 / args.minutes)

    def checkpoint(epoch: int, batch: int) -> None:
        save(last, {"weights": clarifier.small_state(), "optimizer": optimizer.state_dict(),
                    "step": step, "epoch": epoch, "batch": batch,
                    "spent": time.time() - started, "best": best})

    for epoch in range(epoch0, args.epochs):
        rng = random.Random(args.seed * 1000 + epoch)
        todo = batches(units(rng), args.batch, rng)
        sums: dict[str, list[float]] = {}
        tokens, since = 0, time.time()
        clarifier.train()
        for number, examples in enumerate(todo):
            if epoch == epoch0 and number < batch0:
                continue
            if progress() >= 1:
                break
            share = progress()
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * min(1, share / 0.06) * max(0.02, 1 - share)
            batch = model.collate(examples).to(args.device)
            parts = model.losses(clarifier(batch, dtype), batch)
            sum(parts.values()).backward()
            torch.nn.utils.clip_grad_norm_(clarifier.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            tokens += len(batch.flat)
            for name, value in parts.items():
                sums.setdefault(name, []).append(value.item())
            if step % 50 == 0:
                log(epoch=epoch + 1, step=step, minutes=(time.time() - started) / 60,
                    tokens_a_second=round(tokens / (time.time() - since)),
                    **{n: sum(v[-50:]) / len(v[-50:]) for n, v in sums.items()})
            if time.time() - saved > 480:
                checkpoint(epoch, number + 1)
                saved = time.time()
        result = evaluate.measure(clarifier, tokenizer, validation, dtype)
        if composed_validation:
            log(epoch=epoch + 1, composed=evaluate.measure(clarifier, tokenizer, composed_validation, dtype))
        score = (result["gate1"]["auc"] + result["gate2"]["auc"]) / 2
        if math.isnan(score):
            score = 0.0
        log(epoch=epoch + 1, step=step, minutes=(time.time() - started) / 60, validation=result)
        save(os.path.join(args.out, f"epoch{epoch + 1}.pt"), clarifier.small_state())
        if score >= best:
            best = score
            save(os.path.join(args.out, "best.pt"), clarifier.small_state())
        checkpoint(epoch + 1, 0)
        if progress() >= 1:
            break


if __name__ == "__main__":
    main()
