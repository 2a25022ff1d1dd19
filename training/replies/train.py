"""Trains the reader of replies: LoRA on the encoder and its heads.

    python train.py --base BASE --out RUN [--fold 0]

A reply is read together with the clarification that it answers, in one row:

    [CLS] reply [SEP] question [SEP] clarification [SEP] 1 option [SEP] 2 option [SEP] ...

The heads give the kind of the reply, and for each option whether it is meant.
With --fold the clarifications of that fold are left out of the training, and
RUN/fold.jsonl receives what is read of them. Without it, all are trained on and
RUN/all.pt receives the weights.
"""

import argparse
import hashlib
import json
import os
import random
import re
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertModel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import data
import model
from model import Blocks, linear, mlp, norm

KINDS = ["choice", "several", "all", "none", "detail", "just_answer", "dont_know", "explain",
         "new_question", "cancel", "unclear_choice"]
CHOOSING = {"choice", "several", "all"}
FOLDS = 5

# Token budgets, the first ones of each part. They are part of the input contract:
# export.py writes them to reply.json and the reader in Go takes them from there.
BUDGET = {"reply": 96, "question": 48, "clarification": 64, "option": 24, "options": 8}
RANK, ALPHA = 32, 64
FROZEN = 0  # lowest layers, which stay as they are
TARGETS = ["query", "key", "value", "attention.output.dense", "intermediate.dense", "output.dense"]
OPTION_HIDDEN, KIND_HIDDEN = 64, 128
MISSING = -5.0  # stands for the logit of an option that does not exist

OWN = ["natural.jsonl", "hard.jsonl", "more.jsonl", "wide.jsonl", "further.jsonl"]
MENDED = ["replies.jsonl", "replies_unseen.jsonl", "replies_third.jsonl"]


def fold_of(case: dict) -> int:
    """The fold of a case; the replies to one clarification stand in one fold."""
    key = case["pending"]["question"] + "\n" + case["pending"]["text"]
    return hashlib.sha256(key.encode()).digest()[0] % FOLDS


def cases(names, folder=HERE) -> list[dict]:
    found = []
    for name in names:
        path = os.path.join(folder, name)
        for c in data.read_jsonl(path) if os.path.exists(path) else []:
            c["bank"] = name.removesuffix(".jsonl")
            found.append(c)
    return found


def readings(case: dict) -> list[tuple[str, list[str]]]:
    """The reading as written, then others that can be defended."""
    return [(r["kind"], r.get("chosen") or []) for r in [case] + case.get("alt", [])]


@dataclass
class Example:
    ids: list[int]
    types: list[int]
    reply: tuple[int, int]
    options: list[tuple[int, int]]
    kind: np.ndarray  # [11] target distribution
    meant: np.ndarray  # [options], NaN where open


def tokens(tokenizer, text: str, most: int) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids[:most]


def example(tokenizer, case: dict) -> Example:
    p = case["pending"]
    options = (p.get("options") or [])[: BUDGET["options"]]
    ids, types = [data.CLS], [0]

    def add(text, most, kind):
        at = len(ids)
        part = tokens(tokenizer, text, most)
        ids.extend(part + [data.SEP])
        types.extend([kind] * (len(part) + 1))
        return at, len(ids) - 1

    reply = add(case["reply"], BUDGET["reply"], 0)
    add(p["question"], BUDGET["question"], 1)
    add(p["text"], BUDGET["clarification"], 1)
    spans = [add(f"{i + 1} {o['text']}", BUDGET["option"], 1) for i, o in enumerate(options)]
    kind = np.zeros(len(KINDS), np.float32)
    found = readings(case)
    for n, (k, _) in enumerate(found):
        kind[KINDS.index(k)] += 1 if len(found) == 1 else 0.7 if n == 0 else 0.3 / (len(found) - 1)
    meant = np.full(len(options), np.nan, np.float32)
    if found[0][0] in CHOOSING | {"unclear_choice", "none", "detail", "new_question"}:
        meant[:] = [float(o["id"] in found[0][1]) for o in options]
        for k, chosen in found[1:]:
            if k in CHOOSING and found[0][0] == "detail":
                for i, o in enumerate(options):
                    meant[i] = max(meant[i], 0.5 * (o["id"] in chosen))
    return Example(ids, types, reply, spans, kind, meant)


@dataclass
class Batch:
    ids: torch.Tensor  # [T] tokens of all rows, one after another
    types: torch.Tensor
    positions: torch.Tensor
    blocks: Blocks
    first: torch.Tensor  # [B]
    reply: torch.Tensor  # [B, T] mean
    options: torch.Tensor  # [B*O, T] mean, O the most options
    exists: torch.Tensor  # [B, O]
    kind: torch.Tensor  # [B, 11]
    meant: torch.Tensor  # [B, O]


def collate(examples: list[Example]) -> Batch:
    B, O = len(examples), max(1, max(len(e.options) for e in examples))
    T = sum(len(e.ids) for e in examples)
    reply, options = torch.zeros(B, T), torch.zeros(B, O, T)
    exists, meant = torch.zeros(B, O, dtype=torch.bool), torch.full((B, O), data.NAN)
    runs, at = [], 0
    for b, e in enumerate(examples):
        runs.append((at, len(e.ids)))
        for row, (i, j) in [(reply[b], e.reply)] + [(options[b, o], s) for o, s in enumerate(e.options)]:
            row[at + i : at + max(j, i + 1)] = 1 / max(1, j - i)
        exists[b, : len(e.options)] = True
        meant[b, : len(e.options)] = torch.as_tensor(e.meant)
        at += len(e.ids)
    return Batch(
        torch.tensor([i for e in examples for i in e.ids]), torch.tensor([t for e in examples for t in e.types]),
        torch.tensor([n for e in examples for n in range(len(e.ids))]), Blocks.of(runs),
        torch.tensor([r[0] for r in runs]), reply, options.view(B * O, T), exists,
        torch.as_tensor(np.stack([e.kind for e in examples])), meant)


class Reader(nn.Module):
    def __init__(self, base: str, dropout: float = 0.1):
        super().__init__()
        bert = BertModel.from_pretrained(base, add_pooling_layer=False)
        self.peft = get_peft_model(bert, LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=model.LORA_DROPOUT, bias="none",
            target_modules=TARGETS, task_type="FEATURE_EXTRACTION",
            layers_to_transform=list(range(FROZEN, bert.config.num_hidden_layers)), layers_pattern="layer"))
        d, self.dropout = bert.config.hidden_size, dropout
        self.option = nn.ModuleList([nn.Linear(4 * d, OPTION_HIDDEN), nn.Linear(OPTION_HIDDEN, 1)])
        self.kind = nn.ModuleList([nn.Linear(3 * d + 3, KIND_HIDDEN), nn.Linear(KIND_HIDDEN, len(KINDS))])

    def head_parameters(self):
        return [p for n, p in self.named_parameters() if not n.startswith("peft.")]

    def lora_parameters(self):
        return [p for p in self.peft.parameters() if p.requires_grad]

    def small_state(self):
        return {n: p.detach().clone() for n, p in self.named_parameters()
                if p.requires_grad or not n.startswith("peft.")}

    def start(self, path: str) -> None:
        """Takes the weights of a run, whose rank may be lower and whose layers fewer;
        what is new says nothing at first."""
        own = dict(self.named_parameters())
        with torch.no_grad():
            for name, value in torch.load(path, weights_only=True).items():
                own[name][tuple(slice(n) for n in value.shape)].copy_(value)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def encode(self, b: Batch, dtype) -> torch.Tensor:
        bert = self.peft.base_model.model
        with torch.no_grad():
            x = bert.embeddings(input_ids=b.ids[None], token_type_ids=b.types[None], position_ids=b.positions[None])
            x = x[0].to(dtype)
            for layer in bert.encoder.layer[:FROZEN]:
                x = self.layer(layer, x, b)
        for layer in bert.encoder.layer[FROZEN:]:
            x = self.layer(layer, x, b)
        return x.float()

    def layer(self, layer, x, b: Batch):
        out = layer.attention.output
        y = model.Clarifier.attention(self, layer, x, [b.blocks])
        x = norm(out.LayerNorm, x + self.drop(linear(out.dense, y)))
        y = F.gelu(linear(layer.intermediate.dense, x))
        return norm(layer.output.LayerNorm, x + self.drop(linear(layer.output.dense, y)))

    def forward(self, b: Batch, dtype=torch.float32):
        """Logits of the kinds, [B, 11], and of the options, [B, O]."""
        h = self.encode(b, dtype)
        B, O = b.exists.shape
        said = b.reply @ h  # [B, d]
        offered = (b.options @ h).view(B, O, -1)
        s = said[:, None].expand_as(offered)
        x = torch.cat([offered, s, offered * s, (offered - s).abs()], -1)
        meant = mlp(self.option, x, self.drop)[..., 0].masked_fill(~b.exists, MISSING)
        weight = torch.softmax(meant.masked_fill(~b.exists, -1e4), 1) * b.exists
        most = (weight[..., None] * offered).sum(1)
        two = F.pad(meant, (0, 2), value=MISSING).topk(2, 1).values
        count = b.exists.sum(1, keepdim=True).float()
        signs = torch.cat([two, count], 1)
        kind = mlp(self.kind, torch.cat([h[b.first], said, most, signs], -1), self.drop)
        return kind, meant


def loss(kind, meant, b: Batch):
    k = -(b.kind * torch.log_softmax(kind, 1)).sum(1).mean()
    known = ~torch.isnan(b.meant) & b.exists
    if not known.any():
        return k
    o = F.binary_cross_entropy_with_logits(meant[known], b.meant[known])
    return k + 2 * o


# --- more from the same ------------------------------------------------------

ORDINAL = re.compile(
    r"\d|\b(first|second|third|fourth|last|former|latter|one|two|three|[abc]|erste\w*|zweite\w*|dritte\w*|letzte\w*|"
    r"premi\w+|deuxi\w+|second\w*|troisi\w+|derni\w+|primer\w*|segund\w*|tercer\w*|últim\w*|pehla|pehli|dusra|dusri|doosr\w+|"
    r"aakhri|left|right|top|bottom|middle|above)\b|[第一二三前后最]|पहल|दूसर|तीसर|आख", re.I)
FREE = {"just_answer", "dont_know", "cancel", "explain", "unclear_choice", "new_question"}


def words(text: str) -> set[str]:
    return {w for w in re.findall(r"\w+", text.lower()) if len(w) > 3} | set(re.findall(r"[\u4e00-\u9fff\u0900-\u097f]", text))


COMMON = {"de": "der die das ist ich ein eine oder und welche welcher welches wie meine für nicht sie",
          "fr": "le la les est un une ou et quel quelle des votre mon ma pour vous c'est du je",
          "es": "el la los es un una o y qué cuál del para mi su cómo puedo tiene cuánto"}
COMMON = {name: set(ws.split()) for name, ws in COMMON.items()}


def language(text: str) -> str:
    for name, pattern in (("zh", "[\u4e00-\u9fff]"), ("hi", "[\u0900-\u097f]")):
        if re.search(pattern, text):
            return name
    ws = re.findall(r"[\w']+", text.lower())
    count = {name: sum(w in common for w in ws) for name, common in COMMON.items()}
    best = max(count, key=count.get)
    return best if count[best] >= max(2, 0.15 * len(ws)) else "en"


def phrases() -> dict[tuple[str, str], list[str]]:
    """The phrases by kind and language."""
    found, at = {}, None
    with open(os.path.join(HERE, "phrases.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("["):
                at = tuple(line.strip("[]").split())
            elif line and not line.startswith("#"):
                found.setdefault(at, []).append(line)
    return found


class Drawer:
    """Draws an epoch: each case, changed a little, and some that are composed."""

    def __init__(self, cases, rng):
        self.cases, self.rng, self.phrases = cases, rng, phrases()
        pending = {}
        for c in cases:
            p = c["pending"]
            pending[p["question"] + p["text"]] = (c.get("language") or language(p["question"] + " " + p["text"]), p)
        self.pending = {}
        for lang, p in pending.values():
            self.pending.setdefault(lang, []).append(p)
        self.free = [c for c in cases if len(readings(c)) == 1 and c["kind"] in FREE and
                     not words(c["reply"]) & self.said(c["pending"])
                     and (c["kind"] != "unclear_choice" or not c.get("chosen"))]

    @staticmethod
    def said(p):
        return words(" ".join([p["question"], p["text"]] + [o["text"] for o in p.get("options") or []]))

    def change(self, reply: str) -> str:
        r = self.rng
        if r.random() < 0.15:
            reply = reply.rstrip(".!?。？！ ") or reply
        if r.random() < 0.1:
            reply = reply.lower()
        if r.random() < 0.08 and len(reply) > 8 and reply.isascii():
            i = r.randrange(1, len(reply) - 2)
            if reply[i : i + 2].isalpha():
                reply = r.choice([reply[:i] + reply[i + 1] + reply[i] + reply[i + 2 :], reply[:i] + reply[i + 1 :]])
        return reply

    def one(self, c: dict) -> dict:
        p = dict(c["pending"])
        if p.get("options") and self.rng.random() < 0.5 and not ORDINAL.search(c["reply"]):
            p["options"] = self.rng.sample(p["options"], len(p["options"]))
        return dict(c, pending=p, reply=self.change(c["reply"]))

    def elsewhere(self, c: dict) -> dict | None:
        """A reply that hangs on nothing of its clarification, under another one."""
        among = self.pending.get(c.get("language") or language(c["reply"]))
        for _ in range(8):
            p = self.rng.choice(among)
            if bool(p.get("options")) == bool(c["pending"].get("options")) and not words(c["reply"]) & self.said(p):
                return {"pending": p, "reply": self.change(c["reply"]), "kind": c["kind"], "chosen": []}
        return None

    def phrased(self) -> dict | None:
        """A case composed of a phrase and a clarification."""
        r = self.rng
        lang = r.choices(["en", "de", "fr", "es", "zh", "hi"], [10, 1, 1, 1, 1, 1])[0]
        kind = r.choice(sorted({k for k, l in self.phrases if l == lang}))
        p, phrase = r.choice(self.pending[lang]), r.choice(self.phrases[kind, lang])
        options = p.get("options") or []
        n, chosen = len(options), []
        if "{N}" in phrase:
            other = r.choice(self.pending[lang])["question"]
            if words(other) & self.said(p):
                return None
            phrase = phrase.replace("{N}", other)
        if n == 0 and ("{" in phrase or kind not in {"just_answer", "dont_know", "cancel", "explain", "new_question"}):
            return None
        if kind == "unclear_choice" and n < 3 or kind == "all" and n < 2:
            return None
        if re.search(r"\b(both|neither|either|beid\w+|les deux|deux|ambos|dos|dono)\b|दोनों|两", phrase) and n != 2 and "{" not in phrase:
            return None
        if "three" in phrase and n != 3:
            return None
        if "{" in phrase:
            if n < 2:
                return None
            a, b = r.sample(range(n), 2)
            for name, i in (("a", a), ("b", b)):
                text = options[i]["text"]
                others = words(" ".join(o["text"] for j, o in enumerate(options) if j != i))
                telling = [w for w in re.findall(r"[\w-]+", text) if len(w) > 3 and not words(w) & others]
                if "{" + name + "}" in phrase and not telling and len(text) > 25:
                    return None
                phrase = phrase.replace("{" + name.upper() + "}", text).replace("{" + name + "}", r.choice(telling) if telling else text)
            if kind == "choice":
                chosen = [a]
            elif kind == "none" and not ("neither" in phrase or "nor" in phrase or options[b]["text"] in phrase) and n == 2:
                kind, chosen = "choice", [b]
            elif kind == "several":
                kind, chosen = ("all" if n == 2 else kind), sorted([a, b])
            elif kind == "unclear_pair":
                kind, chosen = "unclear_choice", sorted([a, b])
        if kind == "all":
            chosen = list(range(n))
        if lang == "en" and r.random() < 0.15:
            phrase = r.choice(["hm, ", "well, ", "sorry, ", "oh ", "hi, ", "um "]) + phrase
        elif lang == "en" and r.random() < 0.1:
            phrase += r.choice([", thanks", " please", " tbh", "!", " :)", ", sorry"])
        return {"pending": p, "reply": self.change(phrase), "kind": kind, "chosen": [options[i]["id"] for i in chosen]}

    def epoch(self, share: float) -> list[dict]:
        found = [self.one(c) for c in self.cases if c["bank"] + ".jsonl" in OWN or self.rng.random() < 0.7]
        n = int(share * len(self.cases))
        found += [self.elsewhere(c) for c in self.rng.sample(self.free, min(n // 2, len(self.free)))]
        found += [self.phrased() for _ in range(2 * n)]
        return [c for c in found if c]


def batches(examples, size, rng):
    """Batches of about `size` tokens, of similar length, in random order."""
    rng.shuffle(examples)
    result = []
    for at in range(0, len(examples), 512):
        batch, n = [], 0
        for e in sorted(examples[at : at + 512], key=lambda e: len(e.ids)):
            batch.append(e)
            n += len(e.ids)
            if n >= size:
                result.append(batch)
                batch, n = [], 0
        if batch:
            result.append(batch)
    rng.shuffle(result)
    return result


@torch.no_grad()
def read(reader, tokenizer, cases, dtype=torch.float32):
    """For each case the logits of the kinds and of the options."""
    reader.eval()
    examples = [example(tokenizer, c) for c in cases]
    order = sorted(range(len(cases)), key=lambda i: len(examples[i].ids))
    out = [None] * len(cases)
    for at in range(0, len(order), 32):
        part = order[at : at + 32]
        kind, meant = reader(collate([examples[i] for i in part]), dtype)
        for row, i in enumerate(part):
            out[i] = (kind[row].tolist(), meant[row, : len(examples[i].options)].tolist())
    return out


def figures(cases, outputs) -> dict:
    """Right kind (or a defensible one), right options too, by bank; topic changes."""
    tally = {}
    for c, (kind, meant) in zip(cases, outputs):
        k = KINDS[int(np.argmax(kind))]
        found = readings(c)
        ids = [o["id"] for o in (c["pending"].get("options") or [])[: BUDGET["options"]]]
        best = ids[int(np.argmax(meant))] if meant else ""
        for name in (c["bank"], c["bank"] + " " + c["kind"]):
            t = tally.setdefault(name, [0, 0, 0, 0, 0])
            t[0] += 1
            t[1] += k in [f[0] for f in found]
            t[2] += c["kind"] == "choice" and [best] == c["chosen"]
            t[3] += c["kind"] == "new_question" and k not in [f[0] for f in found]
            t[4] += k == "new_question" and k not in [f[0] for f in found]
    return {n: [t[0], round(100 * t[1] / t[0], 1)] + t[2:] for n, t in sorted(tally.items())}


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="folder of the base model (Hugging Face form)")
    ap.add_argument("--out", required=True, help="folder of the run")
    ap.add_argument("--fold", type=int, default=-1)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--tokens", type=int, default=1200, help="in a batch")
    ap.add_argument("--share", type=float, default=0.1, help="of composed cases")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--start", help="a run's weights to go on from, trained without the same fold")
    ap.add_argument("--float32", action="store_true")
    ap.add_argument("--every", type=int, default=1, help="epochs between figures")
    args = ap.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    dtype = torch.float32 if args.float32 else torch.bfloat16
    tokenizer = data.load_tokenizer(args.base)
    own = cases(OWN)
    mended = cases(MENDED, os.path.join(HERE, "..", "..", "conversation", "testdata"))
    left_out = [c for c in own if fold_of(c) == args.fold]
    train = [c for c in own if fold_of(c) != args.fold] + mended
    rng = random.Random(args.seed)
    drawer = Drawer(train, rng)
    reader = Reader(args.base)
    if args.start:
        reader.start(args.start)
    optimizer = torch.optim.AdamW([{"params": reader.lora_parameters(), "lr": args.lr},
                                   {"params": reader.head_parameters(), "lr": args.lr}], weight_decay=0.01)
    drawn = [batches([example(tokenizer, c) for c in drawer.epoch(args.share)], args.tokens, rng)
             for _ in range(args.epochs)]
    steps, step = sum(map(len, drawn)), 0
    print(f"{len(train)} cases, {len(left_out)} left out, {len(drawer.free)} free, {steps} steps", flush=True)
    began = time.time()
    for n, todo in enumerate(drawn):
        reader.train()
        total, seen = 0.0, 0
        for examples in todo:
            share = step / steps
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1, share / 0.06) * max(0.02, 1 - share)
            b = collate(examples)
            value = loss(*reader(b, dtype), b)
            value.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            total += value.item()
            seen += len(b.ids)
        print(f"epoch {n + 1}: loss {total / len(todo):.3f}, {seen} tokens, {(time.time() - began) / 60:.1f} min", flush=True)
        if left_out and ((n + 1) % args.every == 0 or n + 1 == args.epochs):
            outputs = read(reader, tokenizer, left_out, dtype)
            f = figures(left_out, outputs)
            print({k: v for k, v in f.items() if " " not in k}, flush=True)
    if left_out:
        print(json.dumps(f), flush=True)
        with open(os.path.join(args.out, "fold.jsonl"), "w") as file:
            for c, (kind, meant) in zip(left_out, outputs):
                print(json.dumps({"id": c["id"], "bank": c["bank"], "kind": kind, "meant": meant}), file=file)
    torch.save(reader.small_state(), os.path.join(args.out, "all.pt" if args.fold < 0 else "fold.pt"))


if __name__ == "__main__":
    main()
