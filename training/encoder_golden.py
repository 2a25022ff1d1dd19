#!/usr/bin/env python3
"""Write the golden files of internal/encoder/testdata from the reference implementation.

    python training/encoder_golden.py MODEL DEQUANTISED internal/encoder/testdata

MODEL is the folder of the original float32 weights that convert_base.py reads,
DEQUANTISED what it writes with --dequantised. The reference is transformers
with PyTorch in float32, PEFT for the adapters, and tokenizers for token ids.
All input is made here from fixed seeds.

    tokens.json.gz      2,000 strings (base64 of UTF-8) and their token ids; special
                        tokens are not recognised in text, so that "[SEP]" is plain text
    embeddings.json.gz  200 texts and their vectors by the original weights (base64 of float16)
    NAME/               a small random model (config.json, vocab.txt, model.safetensors)
    NAME/adapter/       a random adapter for it, as PEFT saves it
    NAME/cases.json.gz  sequences, joint layers, adapter or not, and the last hidden states
    minilm/             the same for the shipped weights: adapter and cases only
"""

import argparse
import base64
import gzip
import json
import pathlib
import random

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

SENTENCES = """\
The warranty covers parts for two years, but not labour.
Which of the two offices do you mean, the one in Lyon or the one in Porto?
Press and hold the power button for ten seconds until the light blinks twice.
ERR-5172 means that the pump has run dry; ERR-5173 that the filter is clogged.
Refunds are paid within 14 days to the account from which the order was paid.
I asked about contractors, not employees; does the same limit apply?
The mitochondrion is the powerhouse of the cell, as every textbook repeats.
In 1987 the bridge was closed to traffic over 3.5 tonnes.
Don't you think it's a little late for that now, Mr. O'Neill?
Annual leave: 25 days (30 from the fifth year), plus public holidays.
Das Fahrrad wird in etwa drei Wochen geliefert, spätestens Anfang März.
Die Größe der Straße überraschte die Gäste aus Österreich sehr.
Le contrat peut être résilié à tout moment, sans préavis ni pénalité.
¿Dónde está la oficina más cercana y a qué hora abre los sábados?
A garantia não cobre danos causados por água ou calor excessivo.
Il conto è stato addebitato due volte; perché nessuno risponde?
Årsredovisningen för 2023 finns på hemsidan, sök under "ekonomi".
Zażółć gęślą jaźń, powiedział ktoś w Łodzi.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Привет, мир! Когда будет готов отчёт за третий квартал?
Το συμβόλαιο λήγει στις 31 Δεκεμβρίου.
我们的退货政策是什么?请在三十天内联系客服。
注文番号を教えてください。配送は三日以内に完了します。
배송은 보통 영업일 기준 3일 이내에 완료됩니다.
मेरा ऑर्डर अभी तक नहीं आया है, कृपया मदद करें।
متى يفتح المكتب يوم الأحد؟
מתי נפתח המשרד ביום ראשון?
สินค้าจะถูกจัดส่งภายในสามวันทำการ
Bảo hành không áp dụng cho hư hỏng do nước.
func main() { fmt.Println("hello, world") } // prints a greeting
SELECT id, name FROM customers WHERE created_at >= '2024-01-01' ORDER BY name;
for i in range(10): total += values[i] * weights[i]
{"kind": "answer", "text": "Two years.", "citations": [{"n": 1}]}
| Model | Torque (Nm) | Weight (kg) | Price |
|-------|-------------|-------------|-------|
| A-200 | 65 | 3.1 | 1,249.00 EUR |
| B-350 | 85 | 2.9 | 1,599.00 EUR |
https://docs.example.org/v2/install?lang=en&os=linux#requirements
Contact: support@example.org, +44 20 7946 0018, Mon-Fri 9-17h
curl -sS -X POST -H 'Content-Type: application/json' -d @body.json localhost:8080/ask
""".splitlines()

# Ranges of code points by script and kind, for random strings.
RANGES = [
    (0x20, 0x7E), (0x20, 0x7E), (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x24F), (0x250, 0x2AF),
    (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF),
    (0x900, 0x97F), (0x980, 0x9FF), (0xB80, 0xBFF), (0xE00, 0xE7F), (0xF00, 0xFFF), (0x10A0, 0x10FF),
    (0x1100, 0x11FF), (0x1200, 0x137F), (0x1680, 0x169F), (0x1700, 0x173F), (0x1800, 0x18AF), (0x1E00, 0x1EFF),
    (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x209F), (0x20A0, 0x20CF), (0x20D0, 0x20FF), (0x2100, 0x214F),
    (0x2150, 0x218F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2460, 0x24FF), (0x2500, 0x257F), (0x2600, 0x27BF),
    (0x2E00, 0x2E5D), (0x3000, 0x303F), (0x3040, 0x309F), (0x30A0, 0x30FF), (0x3130, 0x318F), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFAFF),
    (0xFB00, 0xFB4F), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0xFF00, 0xFFEF), (0x0, 0x1F), (0x7F, 0x9F),
    (0x10000, 0x1007F), (0x10330, 0x1034F), (0x11100, 0x111FF), (0x1D100, 0x1D1FF), (0x1D400, 0x1D7FF),
    (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x20000, 0x2A6DF), (0x2B740, 0x2B9FF),
    (0x2F800, 0x2FA1F), (0xE0000, 0xE007F), (0x10FF00, 0x10FFFF),
]

FIXED = [
    "", " ", "a", "[SEP]", "[CLS] who is it [SEP] [MASK] [PAD] [UNK]", "[unused1] [SEP", "##ing ###", "[ S E P ]",
    "don't we'll it's e.g. U.S.A. 3.14 1,000,000", "e\u0301 and \u00e9", "\u0301 leading mark", "\ufeffbyte order mark",
    "\u200bzero\u200dwidth\u00adsoft", "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1EB\U0001F1F7 \U0001F44D\U0001F3FD",
    "\ufffd replacement \x00 null \x7f delete", "\u0130stanbul I \u0131 \u1e9e \u00df \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2",
    "\ufb01 ligature \u00bd \u00b2 \u2122 \u2460", "x" * 100, "x" * 101, "\u00e9" * 100, "e\u0301" * 101, "ab " * 600,
    "supercalifragilisticexpialidocious antidisestablishmentarianism", "A\x0bB\x0cC\x85D\u2028E\u3000F", "\u302e\u0300\u302a\U0001D165\u0323",
    "\u1734\u1885\ua9bd\U000111c9\u166d", "q\u0307\u0323 \u1e69 s\u0323\u0307", "\u0344\u0958\u2adc\u037e\u0387",
]


def random_string(r: random.Random, words: list[str]) -> str:
    kind = r.random()
    if kind < 0.15:  # any characters at all
        return "".join(random_char(r) for _ in range(r.randint(1, 40)))
    if kind < 0.35:  # one script, with spaces
        low, high = r.choice(RANGES)
        return "".join(r.choice([" ", "", "", ""]) + chr(r.randint(low, high)) for _ in range(r.randint(1, 30)))
    if kind < 0.5:  # words of the vocabulary, glued, cut and recased
        picked = [r.choice(words) for _ in range(r.randint(1, 12))]
        return "".join(w.upper() if r.random() < 0.2 else w[r.randint(0, 1):] + r.choice(["", " ", "-", "\u0301"]) for w in picked)
    if kind < 0.6:  # look-alikes of special tokens in text
        special = r.choice(["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[unused7]", "[sep]", "##s"])
        return r.choice(SENTENCES)[: r.randint(0, 40)] + special + r.choice(SENTENCES)[: r.randint(0, 40)]
    if kind < 0.65:  # long runs
        return r.choice(["a", "ab", "\u4e2d", "1", ".", "\u00e9", "e\u0302"]) * r.randint(30, 130)
    text = list(r.choice(SENTENCES))  # a sentence with something in it
    for _ in range(r.randint(0, 6)):
        text.insert(r.randint(0, len(text)), random_char(r))
    return "".join(text)


def random_char(r: random.Random) -> str:
    low, high = r.choice(RANGES)
    return chr(r.randint(low, high))


def plain_tokenizer(folder: pathlib.Path) -> Tokenizer:
    """The reference tokenizer, blind to special tokens in text and adding none."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    return Tokenizer.from_str(json.dumps(tokenizer))


def write_json(path: pathlib.Path, value) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as out:
        out.write(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode())


def packed(values, dtype) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype).tobytes()).decode()


def write_tokens(out: pathlib.Path, tokenizer: Tokenizer) -> None:
    r = random.Random(1)
    words = [w for w in tokenizer.get_vocab() if w.isalpha()]
    words.sort()
    texts = FIXED + [random_string(r, words) for _ in range(2000 - len(FIXED))]
    rows = [{"text": packed(np.frombuffer(t.encode(), np.uint8), np.uint8), "ids": tokenizer.encode(t).ids} for t in texts]
    write_json(out / "tokens.json.gz", rows)


def sample_texts(r: random.Random, tokenizer: Tokenizer) -> list[str]:
    """200 texts from one word to 510 tokens."""
    texts = ["a", "Yes.", "?", "ERR-5172", "\u4f60\u597d"] + SENTENCES
    while len(texts) < 200:
        limit = r.choice([12, 30, 60, 120, 240, 509])
        glue = r.choice([" ", "\n", "\n\n"])
        text = r.choice(SENTENCES)
        while True:
            longer = text + glue + r.choice(SENTENCES)
            if len(tokenizer.encode(longer).ids) > limit:
                break
            text = longer
        texts.append(text)
    return texts


@torch.no_grad()
def write_embeddings(out: pathlib.Path, tokenizer: Tokenizer, folder: pathlib.Path) -> None:
    model = load_bert(folder)
    rows = []
    for text in sample_texts(random.Random(2), tokenizer):
        ids = torch.tensor([[101] + tokenizer.encode(text).ids + [102]])
        v = model(input_ids=ids).last_hidden_state[0].mean(0)
        rows.append({"text": text, "vector": packed(v / v.norm(), np.float16)})
    write_json(out / "embeddings.json.gz", rows)


def load_bert(folder: pathlib.Path) -> BertModel:
    return BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").eval()


@torch.no_grad()
def last_states(model: BertModel, sequences, joint: int) -> torch.Tensor:
    """Hidden states of the sequences, laid end to end.

    Each sequence has its own positions and sees itself only, but in the last
    joint layers every token sees all.
    """
    parts = [
        model.embeddings(input_ids=torch.tensor([s["ids"]]), token_type_ids=torch.tensor([s["types"]]))
        for s in sequences
    ]
    states = torch.cat(parts, dim=1)
    owner = torch.cat([torch.full((len(s["ids"]),), i) for i, s in enumerate(sequences)])
    apart = torch.where(owner[:, None] == owner[None, :], 0.0, float("-inf"))[None, None]
    layers = model.encoder.layer
    for i, layer in enumerate(layers):
        mask = torch.zeros_like(apart) if i >= len(layers) - joint else apart
        states = layer(states, attention_mask=mask)
        if isinstance(states, tuple):
            states = states[0]
    return states[0]


def sequences(r: random.Random, vocabulary: int, lengths: list[int]) -> list[dict]:
    return [
        {"ids": [r.randrange(vocabulary) for _ in range(n)], "types": [int(i >= n // 2) for i in range(n)]}
        for n in lengths
    ]


def write_cases(out: pathlib.Path, model: BertModel, adapter: LoraConfig, r: random.Random, lengths: list[int], half: bool) -> None:
    """Cases of the bare model and of the model with a random adapter, and the adapter."""
    vocabulary, layers = model.config.vocab_size, model.config.num_hidden_layers
    inputs = [sequences(r, vocabulary, lengths) for _ in range(2)]
    joints = [0, max(1, layers // 3), layers]
    cases = []

    def add(adapted: bool, bert: BertModel) -> None:
        for joint in joints:
            s = inputs[joint > 0]
            cases.append({"sequences": s, "joint": joint, "adapter": adapted, "states": packed(last_states(bert, s, joint), np.float32)})

    add(False, model)
    wrapped = get_peft_model(model, adapter).eval()
    for name, p in wrapped.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(p, std=0.08)
            if half:
                p.data = p.data.half().float()
    add(True, wrapped.base_model.model)
    wrapped.save_pretrained(out / "adapter")
    (out / "adapter" / "README.md").unlink(missing_ok=True)
    path = out / "adapter" / "adapter_model.safetensors"
    tensors = load_file(path)
    save_file({n: t.half() if half else t for n, t in tensors.items()}, path)
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = None
    config["target_modules"] = sorted(config["target_modules"])
    (out / "adapter" / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    write_json(out / "cases.json.gz", cases)


def write_random(out: pathlib.Path, seed: int, layers: int, hidden: int, heads: int, dtype: torch.dtype, alpha: int) -> None:
    """A small random model with its cases."""
    torch.manual_seed(seed)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    words += ["##" + w for w in words[5:]] + ["the", "and", "##ing"]
    config = BertConfig(
        vocab_size=len(words), hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=2 * hidden, max_position_embeddings=48, layer_norm_eps=1e-7,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    model.config._attn_implementation = "eager"
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.25)
        p.data = p.data.to(dtype).float()
    out.mkdir(parents=True, exist_ok=True)
    save_file({n: p.detach().to(dtype) for n, p in model.named_parameters()}, out / "model.safetensors")
    kept = ("hidden_act", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
            "max_position_embeddings", "layer_norm_eps", "vocab_size", "type_vocab_size", "model_type")
    (out / "config.json").write_text(json.dumps({k: config.to_dict()[k] for k in kept}, indent=2) + "\n")
    (out / "vocab.txt").write_text("".join(w + "\n" for w in words))
    adapter = LoraConfig(r=8, lora_alpha=alpha, target_modules=["query", "key", "value", "dense"], use_rslora=layers > 6)
    write_cases(out, model, adapter, random.Random(seed), [5, 1, 48, 17], half=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("dequantised", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()

    tokenizer = plain_tokenizer(args.dequantised)
    write_tokens(args.out, tokenizer)
    write_embeddings(args.out, tokenizer, args.model)
    write_random(args.out / "random3", 3, layers=3, hidden=64, heads=2, dtype=torch.float32, alpha=16)
    write_random(args.out / "random12", 4, layers=12, hidden=32, heads=2, dtype=torch.float16, alpha=4)
    torch.manual_seed(5)
    adapter = LoraConfig(r=4, lora_alpha=4, target_modules=["query", "value", "output.dense"])
    write_cases(args.out / "minilm", load_bert(args.dequantised), adapter, random.Random(5), [20, 9, 13], half=True)


if __name__ == "__main__":
    main()
