"""Composes contrastive cases from scenes: what stands in them is known, so every mark is free.

    python compose.py --check scenes/*.jsonl
    python compose.py --groups 3 scenes/*.jsonl

A scene (scenes/README.md) is one topic written by hand: the readings that an
answer can depend on, facts that each reading may have, each fact in several
wordings that mean the same, sentences to put them in, questions, and what a user
says that settles a reading or does not. A group of cases is one draw of
passages and one open question; the cases differ in what the user said, in
whether the answers differ, and in what is asked.
"""

import argparse
import hashlib
import json
import random
import re
import sys

REQUIRED = {"id": str, "domain": str, "readings": 3, "facts": 3, "frames": 3, "filler": 4, "questions": 4,
            "with": 3, "histories": 2, "idle": 3, "overview": 2, "unaimed": 2, "aims": 1, "others": 2}
OF_READING = {"option": str, "titles": 1, "holds": 2, "direct": 1, "indirect": 2}


# --- text -------------------------------------------------------------------


def upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def lower_first(text: str, scene: dict) -> str:
    """Small first letter, unless the word is a name or I: a word that the scene
    never writes small keeps its capital."""
    word = re.match(r"[A-Za-z]+", text)
    if not word or word[0] == "I" or word[0][1:].upper() == word[0][1:] and len(word[0]) > 1:
        return text
    small = word[0].lower()
    if small in FUNCTION or re.search(rf"\b{small}\b", scene["_text"]):
        return small[:1] + text[1:]
    return text


FUNCTION = set("""a an the in on at for with without from to by of if when where while as once
 during before after since until under over within outside inside between all any anyone
 everyone each every both no not only our your their my we you they it its this that these those
 as per whoever holders members customers people users those who whose according unless up""".split())


def fill(frame: str, slot: str, text: str) -> tuple[str, str]:
    """The frame with its slot filled, and the filling as it stands in it."""
    at = frame.index("{" + slot + "}")
    before = frame[:at].rstrip()
    if not before or before[-1] in ".!?:":
        text = upper_first(text)
    return frame[:at] + text + frame[at + len(slot) + 2:], text


def spoken(text: str, rng) -> str:
    """As users type: sometimes without capitals, question mark or a letter."""
    if rng.random() < 0.3:
        text = text[:1].lower() + text[1:] if not text.startswith(("I ", "I'")) else text
    if rng.random() < 0.25:
        text = text.rstrip("?. ") or text
    if rng.random() < 0.1:
        text = text.lower()
    return text


# --- passages ---------------------------------------------------------------


def reading_passage(scene, reading: int, fact: list[str], wording: int, number: int, rng) -> dict:
    """A passage that gives the fact for the reading."""
    r = scene["readings"][reading]
    frame = rng.choice(scene["frames"])
    holds = rng.choice(r["holds"])
    answer = fact[wording % len(fact)]
    first, second = sorted(("holds", "fact"), key=lambda s: frame.index("{" + s + "}"))
    values = {"holds": lower_first(holds, scene), "fact": lower_first(answer, scene)}
    sentence, one = fill(frame, first, values[first])
    sentence, two = fill(sentence, second, values[second])
    standing = {first: one, second: two}
    sentences = [upper_first(sentence)]
    if sentence != sentences[0] and sentence.startswith(standing[first]):
        standing[first] = upper_first(standing[first])
    sentences += rng.sample(scene["filler"], rng.choice((0, 1, 1, 2, 3)))
    clues = r.get("clues") or []
    if clues and (rng.random() < 0.85):
        sentences.append(rng.choice(clues))
    rng.shuffle(sentences)
    return {"id": f"p{number}", "title": rng.choice(r["titles"]) if rng.random() < 0.92 else "",
            "text": " ".join(sentences), "answer": standing["fact"], "condition": standing["holds"],
            "_reading": reading}


def other_passage(other: dict, number: int) -> dict:
    return {"id": f"p{number}", "title": other["title"], "text": other["text"], "answer": "",
            "condition": "", "_other": other}


# --- cases ------------------------------------------------------------------


def said(scene, reading: int, rng) -> str:
    r = scene["readings"][reading]
    return rng.choice(r["direct"] if rng.random() < 0.4 else r["indirect"])


def history_with(scene, clause: str, rng) -> list[dict]:
    turns = list(rng.choice(scene["histories"]))
    turns = turns[: len(turns) // 2 * 2]
    out = []
    for i, text in enumerate(turns):
        if "{says}" in text:
            text = fill(text, "says", clause)[0]
        out.append({"role": "user" if i % 2 == 0 else "assistant",
                    "text": spoken(text, rng) if i % 2 == 0 else text})
    return out


def aims(scene, rng) -> list[dict]:
    turns = rng.choice(scene["aims"])
    turns = turns[: len(turns) // 2 * 2]
    return [{"role": "user" if i % 2 == 0 else "assistant", "text": t} for i, t in enumerate(turns)]


def group(scene: dict, number: int, rng) -> list[dict]:
    """A contrastive group: the same passages and nearly the same words, other labels."""
    name = f"{scene['id']}-g{number}"
    readings = rng.sample(range(len(scene["readings"])), rng.choice((2, 2, 3, min(4, len(scene["readings"])))))
    facts = rng.sample(scene["facts"], min(len(scene["facts"]), len(readings)))
    wordings = [rng.randrange(3) for _ in readings]
    extra = rng.sample(scene["others"], rng.choice((0, 1, 1, 2)))
    question = rng.choice(scene["questions"])
    cases = []

    def passages(kept, of_fact):
        found = [reading_passage(scene, readings[k], of_fact(k), wordings[k], k, rng) for k in kept]
        found += [other_passage(o, 10 + i) for i, o in enumerate(extra)]
        rng.shuffle(found)
        return found

    everything = list(range(len(readings)))
    differ = passages(everything, lambda k: facts[k % len(facts)])
    agree = passages(everything, lambda k: facts[0])

    def add(kind, ps, *, history=(), q=question, post=0, pre=0, settled=(), unclear=(), live=(), answers=None):
        ps = [{k: v for k, v in p.items() if k[0] != "_"} if answers is None else
              dict(id=p["id"], title=p["title"], text=p["text"], answer=answers.get(p["id"], ""), condition="")
              for p in ps]
        options = []
        if post:
            options = [{"text": p["answer"], "passages": [p["id"]]} for p in ps if p["id"] in live]
        cases.append({"id": f"{name}-{len(cases)}", "group": name, "domain": "scene/" + scene["id"],
                      "history": list(history), "question": spoken(q, rng), "passages": ps,
                      "pre": pre, "post": post, "settled_by": list(settled), "unclear": list(unclear),
                      "kind": kind, "options": options, "answer": "", "live": list(live)})

    ids = [f"p{k}" for k in everything]
    # Asks: nothing, or nothing that matters, was said.
    for way in rng.sample(("bare", "bare", "history", "question"), rng.choice((1, 2))):
        q, history = question, ()
        if way == "history":
            history = history_with(scene, rng.choice(scene["idle"]), rng)
        elif way == "question":
            q = fill(rng.choice(scene["with"]), "says", rng.choice(scene["idle"]))[0]
        elif cases:
            q = rng.choice(scene["questions"])
        add("open", differ, post=1, live=ids, q=q, history=history)

    # Clear: the user says which, now or before, or as a clarification's answer.
    picked = rng.randrange(len(readings))
    for way in rng.sample(("question", "history", "history", "folded"), 2):
        if way == "folded":
            option = scene["readings"][readings[picked]]["option"]
            add("settled", differ, q=f"{question} ({option})", settled=[option], live=[ids[picked]])
            continue
        clause = said(scene, readings[picked], rng)
        if way == "question":
            q, clause = fill(rng.choice(scene["with"]), "says", clause)
            add("settled", differ, q=q, settled=[clause], live=[ids[picked]])
        else:
            add("settled", differ, history=history_with(scene, clause, rng), settled=[clause], live=[ids[picked]])

    # Another ask, about another state of the passages: some of the answers are the same.
    if len(readings) >= 3 and rng.random() < 0.5:
        partly = passages(everything, lambda k: facts[0] if k < 2 else facts[1])
        add("open-partly-same", partly, post=1, live=ids)
        cases[-1]["options"] = [{"text": facts[0][0], "passages": ids[:2]}] + [
            {"text": "other", "passages": ids[2:]}]

    draw = rng.random()
    if draw < 0.4:
        history = history_with(scene, rng.choice(scene["idle"]), rng) if rng.random() < 0.3 else ()
        add("agree", agree, live=ids, history=history)
    elif draw < 0.55:
        keep = [rng.randrange(len(readings))]
        ps = passages(keep, lambda k: facts[k % len(facts)])
        more = [o for o in scene["others"] if o not in extra]
        ps += [other_passage(o, 20 + i) for i, o in enumerate(more[: rng.choice((1, 2))])]
        add("one-answer", ps, live=[ids[keep[0]]])
    elif draw < 0.7:
        add("overview", differ, q=rng.choice(scene["overview"]), live=ids)
    elif draw < 0.8 and extra:
        other = extra[0]
        chosen = next(p for p in differ if p.get("_other") is other)
        add("other", differ, q=other["question"], live=[chosen["id"]], answers={chosen["id"]: other["answer"]})
    elif draw < 0.9:
        rest = [i for i in range(len(scene["readings"])) if i not in readings]
        if rest:  # the user's own reading is not among the passages
            q, clause = fill(rng.choice(scene["with"]), "says", scene["readings"][rest[0]]["direct"][0])
            add("absent", differ, q=q, settled=[clause], live=[])
    else:
        ps = [other_passage(o, i) for i, o in enumerate(scene["others"])][: rng.choice((2, 3, 4))]
        add("unanswerable", ps)

    # A question without an aim, alone and after something that aims it.
    if rng.random() < 0.3:
        q = rng.choice(scene["unaimed"])
        add("unaimed", differ, q=q, pre=1, post=1, live=ids, unclear=[])
        if rng.random() < 0.5:
            add("follow-up", agree, q=q, history=aims(scene, rng), live=ids)
        else:
            clause = said(scene, readings[picked], rng)
            add("follow-up", differ, q=q, history=history_with(scene, clause, rng) + aims(scene, rng),
                settled=[clause], live=[ids[picked]])
        if rng.random() < 0.5:
            add("follow-up-open", differ, q=q, history=aims(scene, rng), post=1, live=ids)
    for c in cases:  # typed in small letters, a mark may no longer stand there
        text = " ".join([t["text"] for t in c["history"]] + [c["question"]])
        c["settled_by"] = [found(m, text) for m in c["settled_by"] if found(m, text)]
    return cases


def found(mark: str, text: str) -> str:
    at = text.lower().find(mark.lower())
    return text[at : at + len(mark)] if at >= 0 else ""


# --- reading scenes ---------------------------------------------------------


def read(paths: list[str]) -> list[dict]:
    scenes = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.strip():
                    scene = json.loads(line)
                    scene["_text"] = " ".join(scene["filler"] + scene["frames"] + [
                        o["text"] for o in scene["others"]])
                    scenes.append(scene)
    return scenes


def held_out(scene: dict) -> bool:
    """A tenth of the scenes, by name, measures and is never trained on."""
    return int(hashlib.sha256(scene["id"].encode()).hexdigest(), 16) % 10 == 0


def faults(scene: dict) -> list[str]:
    """What does not fit the form, in words."""
    out = []
    for key, least in REQUIRED.items():
        if key not in scene or (least is not str and len(scene[key]) < least):
            out.append(f"{key}: missing or too few")
    for r in scene.get("readings", []):
        for key, least in OF_READING.items():
            if key not in r or (least is not str and len(r[key]) < least):
                out.append(f"reading {r.get('option')}: {key} missing or too few")
    if out:
        return out
    for frame in scene["frames"]:
        if frame.count("{holds}") != 1 or frame.count("{fact}") != 1:
            out.append(f"frame needs {{holds}} and {{fact}} once: {frame}")
    for q in scene["with"]:
        if q.count("{says}") != 1:
            out.append(f"with needs {{says}} once: {q}")
    for h in scene["histories"]:
        if sum(t.count("{says}") for t in h[::2]) != 1 or len(h) % 2 or any("{" in t for t in h[1::2]):
            out.append(f"history needs {{says}} once in a user's turn and an even number of turns: {h[0]}")
    for h in scene["aims"]:
        if len(h) % 2 or any("{" in t for t in h):
            out.append(f"aims needs an even number of turns and no slot: {h[0]}")
    for f in scene["facts"]:
        if len(f) < 2:
            out.append(f"fact needs 3 wordings: {f}")
    for o in scene["others"]:
        if o["answer"] not in o["text"]:
            out.append(f"other: answer is not in the text: {o['answer']}")
    for key in ("questions", "overview", "unaimed", "idle"):
        if any("{" in q for q in scene[key]):
            out.append(f"{key}: has a slot")
    return out


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("scenes", nargs="+")
    ap.add_argument("--check", action="store_true", help="say what does not fit the form")
    ap.add_argument("--groups", type=int, default=1, help="groups of each scene")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    scenes = read(args.scenes)
    if args.check:
        bad = [(s["id"], f) for s in scenes for f in faults(s)]
        for name, fault in bad:
            print(f"{name}: {fault}")
        print(f"{len(scenes)} scenes, {len(bad)} faults", file=sys.stderr)
        sys.exit(bool(bad))
    rng = random.Random(args.seed)
    for scene in scenes:
        for number in range(args.groups):
            for case in group(scene, number, rng):
                print(json.dumps(case, ensure_ascii=False))


if __name__ == "__main__":
    main()
