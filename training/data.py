"""Cases and what the clarifier reads of them.

A case (training/data/README.md describes the fields) becomes a list of
segments. Each segment is a BERT sequence of its own, with positions that
restart at 0:

    segment 0      [CLS] user: ... assistant: ... question: Q [SEP]
    segment 1..n   [CLS] user: ... assistant: ... question: Q [SEP] title. text [SEP]

Beside the token ids stand the targets: four tags a token, two bits a passage,
one bit a pair of passages, and the two gates' labels. A target that the case
does not settle is NaN and takes no part in the loss.
"""

import hashlib
import json
import math
import os
import re
from dataclasses import dataclass, field, replace

import numpy as np
from tokenizers import Tokenizer

CLS, SEP, PAD = 101, 102, 0

# Token budgets and prefixes. They are part of the input contract: export.py
# writes them to clarifier.json and the reader in Go takes them from there.
HISTORY_TOKENS = 128  # the last ones of the history
QUESTION_TOKENS = 96  # the first ones of "question: Q", prefix included
PASSAGE_HISTORY_TOKENS = 80  # the last ones of the history in a passage's segment
PASSAGE_QUESTION_TOKENS = 64  # the first ones of "question: Q" in a passage's segment
PASSAGE_TOKENS = 220  # the first ones of "title. text"
PREFIX = {"user": "user: ", "assistant": "assistant: ", "question": "question: "}

TAGS = ("answer", "condition", "settled", "unclear")
ANSWER, CONDITION, SETTLED, UNCLEAR = range(4)
NAN = float("nan")


def load_tokenizer(base: str) -> Tokenizer:
    """The base's tokenizer without padding, truncation or special tokens.

    A literal "[SEP]" in a text is tokenised as the plain text that it is.
    """
    tokenizer = Tokenizer.from_file(os.path.join(base, "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def read_jsonl(path: str) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


@dataclass
class Segment:
    """One sequence: ids and types, and a row of four tag targets a token."""

    ids: list[int]
    types: list[int]
    tags: np.ndarray  # [tokens, 4], NaN where the tag takes no part


@dataclass
class Example:
    """A case as the model reads it, with its targets."""

    id: str
    group: str
    segments: list[Segment]
    pre: float = NAN
    post: float = NAN
    answers: list[float] = field(default_factory=list)
    live: list[float] = field(default_factory=list)
    conflict: np.ndarray | None = None  # [passages, passages], upper triangle

    @property
    def tokens(self) -> int:
        """Tokens of the packed row; segment 0 stands in it twice."""
        return len(self.segments[0].ids) + sum(len(s.ids) for s in self.segments)


# --- labels -----------------------------------------------------------------


def gate_label(case: dict, gate: str) -> float:
    """1 to ask, 0 not to, NaN where readers disagree and the case leaves it open.

    Where a second reader labelled the case, it counts as asking only if both
    say so.
    """
    first = case.get(gate)
    if first is None:
        return NAN
    second = (case.get("second") or {}).get(gate)
    return float(first if second is None else min(first, second))


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+(?:[.,:'-][^\W_]+)*", text.lower()))


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,:]\d+)*", text))


COMMON = set(
    "a an the of for to in on at by with from and or but is are was were be it its you your "
    "this that if as not no can may must will per each than up only".split()
)


def overlap(part: str, whole: str) -> float:
    """How much of a passage's answer the case's gold answer repeats, 0 to 1.

    Numbers decide where there are any; other words break ties.
    """
    content = words(part) - COMMON
    of_words = len(content & words(whole)) / len(content) if content else 0.0
    figures = numbers(part)
    if not figures:
        return of_words
    return 0.75 * len(figures & numbers(whole)) / len(figures) + 0.25 * of_words


def live_targets(case: dict, post: float) -> list[float]:
    """For each passage: is its answer still possible, given the dialogue?

    Asking: the passages named by the options. Clear and settled by words of
    the dialogue: the passages whose answer is the gold answer. Clear otherwise:
    every passage that answers.
    """
    passages = case["passages"]
    if "live" in case:  # a composed case knows
        return [float(p["id"] in case["live"]) for p in passages]
    answers = [bool(p["answer"]) for p in passages]
    unknown = [NAN] * len(passages)
    if case["options"]:
        if post != 1:  # the readers disagree: which readings remain is open
            return [NAN if a else 0.0 for a in answers]
        named = {i for option in case["options"] for i in option["passages"]}
        if not named:
            return unknown
        return [float(a and p["id"] in named) for a, p in zip(answers, passages)]
    if not case["settled_by"] or sum(answers) < 2:
        return [float(a) for a in answers]
    gold = case["answer"]
    settled = words(" ".join(case["settled_by"])) - COMMON
    score = []
    for passage, has_answer in zip(passages, answers):
        if not has_answer:
            score.append(0.0)
            continue
        condition = words(passage["condition"] + " " + passage["title"]) - COMMON
        by_condition = len(condition & (settled | words(gold))) / len(condition) if condition else 0
        score.append(overlap(passage["answer"], gold) + 0.3 * by_condition)
    best = max(score)
    if best < 0.35:
        return [NAN if a else 0.0 for a in answers]
    return [float(s >= best - 0.2) if a else 0.0 for s, a in zip(score, answers)]


def conflict_targets(case: dict, pre: float, post: float) -> np.ndarray:
    """For each pair of passages: do they hold different answers that are both open?"""
    n = len(case["passages"])
    target = np.full((n, n), NAN, np.float32)
    upper = np.triu_indices(n, 1)
    if post == 0 and not (pre == 1 or case["options"]):
        target[upper] = 0
    elif post == 1 and pre == 0 and any(o["passages"] for o in case["options"]):
        inside = [
            {k for k, o in enumerate(case["options"]) if p["id"] in o["passages"]}
            for p in case["passages"]
        ]
        for i, j in zip(*upper):
            target[i, j] = float(bool(inside[i] and inside[j] and not inside[i] & inside[j]))
    return target


# --- tokens -----------------------------------------------------------------


def spans(text: str, marks: list[str]) -> list[tuple[int, int]]:
    """Every place where one of the marks stands in the text."""
    found = []
    for mark in marks:
        start = text.find(mark) if mark else -1
        while start >= 0:
            found.append((start, start + len(mark)))
            start = text.find(mark, start + len(mark))
    return found


def tokenize(tokenizer: Tokenizer, text: str, marks: dict[int, list[tuple[int, int]]]):
    """Ids of a text and, for each id, which tags' spans it touches."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    tags = np.zeros((len(encoding.ids), len(TAGS)), np.float32)
    for tag, places in marks.items():
        for start, end in places:
            for k, (a, b) in enumerate(encoding.offsets):
                if a < end and b > start:
                    tags[k, tag] = 1
    return encoding.ids, tags


def dialogue(tokenizer: Tokenizer, case: dict):
    """Ids and tags of the history, tokenised turn by turn, and of the question."""
    ids, tags = [], [np.zeros((0, len(TAGS)), np.float32)]
    for turn in case["history"]:
        text = PREFIX[turn["role"]] + turn["text"]
        i, t = tokenize(tokenizer, text, {SETTLED: spans(text, case["settled_by"])})
        ids += i
        tags.append(t)
    text = PREFIX["question"] + case["question"]
    question = tokenize(
        tokenizer, text,
        {SETTLED: spans(text, case["settled_by"]), UNCLEAR: spans(text, case["unclear"])},
    )
    return (ids, np.concatenate(tags)), question


NOTHING = np.zeros((1, len(TAGS)), np.float32)


def dialogue_segment(history, question) -> Segment:
    """[CLS] history question [SEP], of the two parts of a dialogue."""
    ids = [CLS, *history[0][-HISTORY_TOKENS:], *question[0][:QUESTION_TOKENS], SEP]
    tags = np.concatenate([NOTHING, history[1][-HISTORY_TOKENS:], question[1][:QUESTION_TOKENS],
                           NOTHING])
    return Segment(ids, [0] * len(ids), tags)


def passage_text(passage: dict) -> str:
    return f"{passage['title']}. {passage['text']}" if passage["title"] else passage["text"]


def passage_segment(tokenizer: Tokenizer, history, question, passage: dict) -> Segment:
    """[CLS] history question [SEP] title. text [SEP], types 0 up to the first [SEP] and 1 after it."""
    text = passage_text(passage)
    body, body_tags = tokenize(
        tokenizer, text,
        {ANSWER: spans(text, [passage["answer"]]), CONDITION: spans(text, [passage["condition"]])},
    )
    ids = [*history[0][-PASSAGE_HISTORY_TOKENS:], *question[0][:PASSAGE_QUESTION_TOKENS]]
    body, body_tags = body[:PASSAGE_TOKENS], body_tags[:PASSAGE_TOKENS]
    tags = np.concatenate([NOTHING, history[1][-PASSAGE_HISTORY_TOKENS:],
                           question[1][:PASSAGE_QUESTION_TOKENS], NOTHING, body_tags, NOTHING])
    return Segment([CLS, *ids, SEP, *body, SEP], [0] * (len(ids) + 2) + [1] * (len(body) + 1), tags)


def example(tokenizer: Tokenizer, case: dict) -> Example:
    """Reads one case of ours, marks and all; marks may be missing."""
    case = normalised(case)
    pre, post = gate_label(case, "pre"), gate_label(case, "post")
    history, question = dialogue(tokenizer, case)
    segments = [dialogue_segment(history, question)]
    segments += [passage_segment(tokenizer, history, question, p) for p in case["passages"]]
    if case.get("unmarked"):
        for segment in segments:
            segment.tags[:] = NAN
        n = len(case["passages"])
        answers, live, conflict = [NAN] * n, [NAN] * n, np.full((n, n), NAN, np.float32)
    else:
        if case["unclear"] and pre != 1 and post != 1:
            for segment in segments:  # the readers disagree: so may the words
                segment.tags[:, UNCLEAR] = NAN
        answers = [float(bool(p["answer"])) for p in case["passages"]]
        live, conflict = live_targets(case, post), conflict_targets(case, pre, post)
    return Example(case["id"], case["group"], segments, pre, post, answers, live, conflict)


def normalised(case: dict) -> dict:
    """The case with every optional field present."""
    case = {"group": case["id"], "history": [], "passages": [], "settled_by": [], "unclear": [],
            "options": [], "answer": "", "pre": None, "post": None, **case}
    case["passages"] = [{"title": "", "answer": "", "condition": "", **p} for p in case["passages"]]
    return case


# --- augmentation -----------------------------------------------------------


def shuffled(ex: Example, rng, drop: float = 0.15) -> Example:
    """The example with its passages in another order, and sometimes without one
    of those that answer nothing. No label depends on either."""
    order = list(range(len(ex.answers)))
    rng.shuffle(order)
    idle = [i for i in order if ex.answers[i] == 0]
    if len(order) > 2 and idle and rng.random() < drop:
        order.remove(idle[0])
    n = len(order)
    conflict = np.full((n, n), NAN, np.float32)
    for a in range(n):
        for b in range(a + 1, n):
            i, j = sorted((order[a], order[b]))
            conflict[a, b] = ex.conflict[i, j]
    return Example(ex.id, ex.group, [ex.segments[0], *(ex.segments[1 + i] for i in order)],
                   ex.pre, ex.post, [ex.answers[i] for i in order], [ex.live[i] for i in order],
                   conflict)


def one_reading(ex: Example, case: dict, rng) -> Example:
    """An asking example without the passages of all readings but one: clear to gate 2,
    since the passages hold one answer. The example itself if it has no such readings."""
    readings = [set(o["passages"]) for o in case["options"] if o["passages"]]
    if ex.pre != 0 or ex.post != 1 or len(readings) < 2:
        return ex
    kept = rng.choice(readings)
    gone = set().union(*readings) - kept
    order = [i for i, p in enumerate(case["passages"]) if p["id"] not in gone]
    if any(ex.answers[i] and case["passages"][i]["id"] not in kept for i in order):
        return ex  # an answer under no reading: whether it would differ is not known
    segments = [replace(s, tags=s.tags.copy()) for s in (ex.segments[0], *(ex.segments[1 + i] for i in order))]
    for segment in segments:
        segment.tags[:, UNCLEAR] = NAN
    return replace(ex, segments=segments, post=0.0, answers=[ex.answers[i] for i in order],
                   live=[ex.live[i] for i in order],
                   conflict=np.triu(np.zeros((len(order),) * 2, np.float32), 1))


# --- public sets ------------------------------------------------------------

# Gate 1 sets hold only questions that the dialogue settles. Gate 2 sets say
# whether to ask once the passages are known, and nothing about gate 1.
GATE1_SETS = ("canard_dev", "cast", "ikat", "gecor", "mtrag_human_nonstandalone")
GATE2_SETS = ("pacific_part", "abg_coqa_val", "claqua_dev", "mtragun_dev", "ramdocs_part",
              "or_sharc_dev")
PUBLIC_PASSAGES = 6


def public_case(row: dict, name: str) -> dict:
    """A public row as a case without marks. Consecutive turns of one role stay as they are."""
    gate2 = name in GATE2_SETS
    passages = [{"id": str(i), "title": "", "text": d, "answer": "", "condition": ""}
                for i, d in enumerate(row["docs"][:PUBLIC_PASSAGES])] if gate2 else []
    return {
        "id": f"{name}/{row['id']}", "group": f"{name}/{row['id']}", "domain": name,
        "history": row["history"], "question": row["query"], "passages": passages,
        "pre": None if gate2 else row["label"], "post": row["label"] if gate2 else None,
        "kind": row["kind"], "unmarked": True,
    }


def public_sets(folder: str, held_out: bool) -> dict[str, list[dict]]:
    """The public sets as cases, by set: a fifth is held out, by dialogue or document."""
    sets = {}
    for name in GATE1_SETS + GATE2_SETS:
        cases = []
        for row in read_jsonl(os.path.join(folder, name + ".jsonl")):
            if name in GATE2_SETS and not row["docs"]:
                continue
            if name in GATE1_SETS and not row["history"]:
                continue
            first = row["history"][0]["text"] if row["history"] else row["query"]
            key = row["docs"][0] if name in ("abg_coqa_val", "or_sharc_dev") else first
            bucket = int(hashlib.sha256(key.encode()).hexdigest(), 16) % 5
            if (bucket == 0) == held_out:
                cases.append(public_case(row, name))
        sets[name] = cases
    return sets


def is_set(value: float) -> bool:
    return not math.isnan(value)
