"""The clarifier: a BERT encoder with LoRA, and small heads.

A case's segments are packed into one row. Segment 0 (the dialogue) stands in
it twice: once alone, for gate 1, and once beside the passages, for gate 2. In
the lower layers each segment attends only to itself; in the top JOINT_LAYERS
the segments of gate 2 attend to each other, and the lone segment 0 still only
to itself. Gate 1 therefore never sees a passage.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertModel

import data

JOINT_LAYERS = 2
RANK, ALPHA, LORA_DROPOUT = 32, 64, 0.05
TARGETS = ["query", "key", "value", "intermediate.dense", "output.dense"]
READ = 128  # width of a passage's reading
HIDDEN = 128  # width of the hidden layer of each gate
PAIR_HIDDEN = 64
MISSING = -5.0  # stands for a logit that does not exist (a second passage, a pair)


@dataclass
class Batch:
    """Examples as padded rows. B rows, L tokens, S segments, P passages."""

    ids: torch.Tensor  # [B, L]
    types: torch.Tensor  # [B, L]
    positions: torch.Tensor  # [B, L]
    segment: torch.Tensor  # [B, L]: 0 lone dialogue, 1 dialogue, 2.. passages, -1 padding
    first: torch.Tensor  # [B, S]: where a segment begins
    passages: torch.Tensor  # [B]: how many
    tags: torch.Tensor  # [B, L, 4], NaN where it takes no part
    answers: torch.Tensor  # [B, P]
    live: torch.Tensor  # [B, P]
    conflict: torch.Tensor  # [B, P, P], upper triangle
    pre: torch.Tensor  # [B]
    post: torch.Tensor  # [B]
    groups: list[str]
    flat: torch.Tensor  # [T]: places of the T real tokens among the B*L
    own: list["Blocks"]  # what attends to each other in the lower layers
    joint: list["Blocks"]  # and in the top ones

    def to(self, device) -> "Batch":
        return moved(self, device)


@dataclass
class Blocks:
    """N runs of real tokens, padded to M: the tokens of a run attend to each other."""

    index: torch.Tensor  # [N, M] places among the T real tokens, 0 for padding
    there: torch.Tensor  # [N, M] false for padding

    @classmethod
    def of(cls, runs: list[tuple[int, int]]) -> "Blocks":
        start, size = np.array(runs).T
        there = np.arange(size.max())[None] < size[:, None]
        index = np.where(there, start[:, None] + np.arange(size.max())[None], 0)
        return cls(torch.as_tensor(index), torch.as_tensor(there))


def best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def moved(value, device):
    """A Batch or Blocks with every tensor in it on the device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, list):
        return [moved(v, device) for v in value]
    if isinstance(value, (Batch, Blocks)):
        return type(value)(**{f.name: moved(getattr(value, f.name), device) for f in fields(value)})
    return value


def collate(examples: list[data.Example]) -> Batch:
    rows = [[e.segments[0]] + (e.segments if e.answers else []) for e in examples]
    length = max(sum(len(s.ids) for s in row) for row in rows)
    count = max(2, max(len(row) for row in rows))
    passages = max(1, count - 2)
    B = len(examples)
    ids = np.full((B, length), data.PAD)
    types, positions = np.zeros((B, length), int), np.zeros((B, length), int)
    segment, first = np.full((B, length), -1), np.zeros((B, count), int)
    tags = np.full((B, length, len(data.TAGS)), np.nan, np.float32)
    answers, live = (np.full((B, passages), np.nan, np.float32) for _ in range(2))
    conflict = np.full((B, passages, passages), np.nan, np.float32)
    lone, dialogues, texts, joint = [], [], [], []  # runs of real tokens
    real = 0
    for b, (row, e) in enumerate(zip(rows, examples)):
        at = 0
        runs = []
        for s, part in enumerate(row):
            n = len(part.ids)
            ids[b, at : at + n], types[b, at : at + n] = part.ids, part.types
            positions[b, at : at + n], segment[b, at : at + n] = np.arange(n), s
            tags[b, at : at + n] = part.tags
            first[b, s] = at
            runs.append((real + at, n))
            at += n
        lone.append(runs[0])
        dialogues += runs[1:2]
        texts += runs[2:]
        if len(row) > 1:
            joint.append((runs[1][0], at - runs[0][1]))
        real += at
        n = len(e.answers)
        answers[b, :n], live[b, :n] = e.answers, e.live
        if n:
            conflict[b, :n, :n] = e.conflict
    as_tensor = torch.as_tensor
    return Batch(
        as_tensor(ids), as_tensor(types), as_tensor(positions), as_tensor(segment),
        as_tensor(first), torch.tensor([len(e.answers) for e in examples]), as_tensor(tags),
        as_tensor(answers), as_tensor(live), as_tensor(conflict),
        torch.tensor([e.pre for e in examples]), torch.tensor([e.post for e in examples]),
        [e.group for e in examples], torch.as_tensor(np.flatnonzero(segment >= 0)),
        [Blocks.of(r) for r in (lone + dialogues, texts) if r],
        [Blocks.of(r) for r in (lone, joint) if r],
    )


@dataclass
class Output:
    gate1: torch.Tensor  # [B]
    gate2: torch.Tensor  # [B], without meaning for a row without passages
    tags: torch.Tensor  # [B, L, 4]
    passage: torch.Tensor  # [B, P, 2]: answers, live
    pair: torch.Tensor  # [B, P, P], symmetric


def linear(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A linear layer with PEFT's LoRA on it, computed in the type of x.

    The same function as the module's own forward without its casts, and with a
    dropout that costs nothing.
    """
    if not hasattr(module, "lora_A"):
        return F.linear(x, module.weight.to(x.dtype), module.bias.to(x.dtype))
    base = module.base_layer
    y = F.linear(x, base.weight.to(x.dtype), base.bias.to(x.dtype))
    a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
    if module.training:  # drops input features of the low-rank path, the same for all tokens
        a = F.dropout(torch.ones_like(a[:1]), LORA_DROPOUT) * a
    low = F.linear(x, a.to(x.dtype))
    return y + F.linear(low, (b * module.scaling["default"]).to(x.dtype))


class Clarifier(nn.Module):
    def __init__(self, base: str, dropout: float = 0.1):
        super().__init__()
        bert = BertModel.from_pretrained(base, add_pooling_layer=False)
        config = LoraConfig(r=RANK, lora_alpha=ALPHA, lora_dropout=LORA_DROPOUT, bias="none",
                            target_modules=TARGETS, task_type="FEATURE_EXTRACTION")
        self.peft = get_peft_model(bert, config)
        self.dropout = dropout
        d = bert.config.hidden_size
        self.tags = nn.Linear(d, len(data.TAGS))
        self.passage = nn.Linear(READ, 2)
        self.read = nn.Linear(4 * d, READ)
        self.pair = nn.ModuleList([nn.Linear(3 * READ, PAIR_HIDDEN), nn.Linear(PAIR_HIDDEN, 1)])
        self.gate1 = nn.ModuleList([nn.Linear(4 * d, HIDDEN), nn.Linear(HIDDEN, 1)])
        self.gate1_signs = nn.Linear(2, 1, bias=False)
        self.gate2 = nn.ModuleList([nn.Linear(3 * d + 2 * READ, HIDDEN), nn.Linear(HIDDEN, 1)])
        self.gate2_signs = nn.Linear(7, 1, bias=False)

    @property
    def bert(self) -> BertModel:
        return self.peft.base_model.model

    def head_parameters(self):
        return [p for n, p in self.named_parameters() if not n.startswith("peft.")]

    def lora_parameters(self):
        return [p for p in self.peft.parameters() if p.requires_grad]

    def small_state(self) -> dict[str, torch.Tensor]:
        """The trained weights alone: LoRA and heads."""
        return {n: p.detach().cpu() for n, p in self.named_parameters()
                if p.requires_grad or not n.startswith("peft.")}

    # --- encoder ---

    def attention(self, layer, x, blocks: list[Blocks]):
        """Attention inside each block; x is [T, d], every token in one block."""
        own = layer.attention.self
        heads = own.num_attention_heads
        q, k, v = (linear(m, x) for m in (own.query, own.key, own.value))
        parts, places = [], []
        for block in blocks:
            N, M = block.index.shape
            # On a CPU in float32: its backward pass is faster there than bfloat16's.
            kind = torch.float32 if x.device.type == "cpu" else x.dtype
            qb, kb, vb = (t[block.index].to(kind).view(N, M, heads, -1).transpose(1, 2)
                          for t in (q, k, v))
            y = F.scaled_dot_product_attention(qb, kb, vb, attn_mask=block.there[:, None, None])
            parts.append(y.transpose(1, 2).reshape(N, M, -1)[block.there].to(x.dtype))
            places.append(block.index[block.there])
        return torch.cat(parts)[torch.argsort(torch.cat(places))]

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def encode(self, batch: Batch, dtype=torch.float32) -> torch.Tensor:
        """Hidden states of every token of every row, [B, L, d], 0 for padding."""
        B, L = batch.ids.shape
        ids, types, positions = (t.flatten()[batch.flat][None]
                                 for t in (batch.ids, batch.types, batch.positions))
        with torch.no_grad():
            x = self.bert.embeddings(input_ids=ids, token_type_ids=types, position_ids=positions)
        x = x[0].to(dtype)
        layers = self.bert.encoder.layer
        for number, layer in enumerate(layers):
            blocks = batch.joint if number >= len(layers) - JOINT_LAYERS else batch.own
            out = layer.attention.output
            x = norm(out.LayerNorm, x + linear(out.dense, self.attention(layer, x, blocks)))
            y = F.gelu(linear(layer.intermediate.dense, x))
            x = norm(layer.output.LayerNorm, x + linear(layer.output.dense, y))
        x = x.float()
        return x.new_zeros(B * L, x.shape[1]).index_copy(0, batch.flat, x).view(B, L, -1)

    # --- heads ---

    def forward(self, batch: Batch, dtype=torch.float32) -> Output:
        h = self.encode(batch, dtype)
        B, L, d = h.shape
        S = batch.first.shape[1]
        P = max(1, S - 2)
        tags = self.tags(h)
        weight = torch.sigmoid(tags)

        # Means over each segment: plain, and weighted by each tag.
        inside = F.one_hot(batch.segment + 1, S + 1)[..., 1:].to(h.dtype)  # [B, L, S]
        own = inside * torch.cat([h.new_ones(B, L, 2), batch.types[..., None].expand(B, L, S - 2)],
                                 -1)  # of a passage's segment the passage alone
        mean = own.transpose(1, 2) @ h / own.sum(1)[..., None].clamp(min=1)  # [B, S, d]

        def weighted(tag: int) -> torch.Tensor:
            w = inside * weight[..., tag : tag + 1]
            return w.transpose(1, 2) @ h / (w.sum(1)[..., None] + 1e-3)

        answer, condition, settled, unclear = (weighted(t) for t in range(4))
        cls = torch.gather(h, 1, batch.first[..., None].expand(B, S, d))

        def highest(tag: int, segment: int) -> torch.Tensor:
            outside = batch.segment != segment
            return tags[..., tag].masked_fill(outside, MISSING).amax(1)

        signs1 = torch.stack([highest(data.UNCLEAR, 0), highest(data.SETTLED, 0)], -1)
        gate1 = torch.cat([cls[:, 0], mean[:, 0], unclear[:, 0], settled[:, 0]], -1)
        gate1 = (mlp(self.gate1, gate1, self.drop) + self.gate1_signs(signs1))[:, 0]
        if S == 2:
            return Output(gate1, h.new_zeros(B), tags, h.new_zeros(B, 1, 2), h.new_zeros(B, 1, 1))

        exists = torch.arange(P, device=h.device)[None] < batch.passages[:, None]  # [B, P]
        # Not from [CLS]: once segments attend to each other, nothing in it says
        # which segment it stands for, and those of all passages become the same.
        c = F.gelu(self.read(torch.cat([mean, answer, condition, settled], -1)[:, 2:]))  # [B, P, READ]
        passage = self.passage(c)
        a, b = c[:, :, None], c[:, None]
        pair = mlp(self.pair, torch.cat([a + b, (a - b).abs(), a * b], -1), self.drop)[..., 0]

        there = exists[..., None]
        mean_c = (c * there).sum(1) / there.sum(1).clamp(min=1)
        max_c = c.masked_fill(~there, -1e4).amax(1).clamp(min=-1)
        both = exists[:, :, None] & exists[:, None] & exists.new_ones(P, P).triu(1)
        most = [pair.masked_fill(~both, MISSING).flatten(1).amax(1)]
        for kind in (0, 1):
            logit = passage[..., kind].masked_fill(~exists, MISSING)
            logit = F.pad(logit, (0, 1), value=MISSING)
            most += list(logit.topk(2, 1).values.unbind(1))
        most += [highest(data.UNCLEAR, 1), highest(data.SETTLED, 1)]
        gate2 = torch.cat([cls[:, 1], mean[:, 1], settled[:, 1], mean_c, max_c], -1)
        gate2 = (mlp(self.gate2, gate2, self.drop) + self.gate2_signs(torch.stack(most, -1)))[:, 0]
        return Output(gate1, gate2, tags, passage, pair)


def norm(layer: nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, layer.normalized_shape, layer.weight.to(x.dtype),
                        layer.bias.to(x.dtype), layer.eps)


def mlp(layers: nn.ModuleList, x: torch.Tensor, drop) -> torch.Tensor:
    """Linear, GELU (erf), linear."""
    return layers[1](drop(F.gelu(layers[0](x))))


# --- loss -------------------------------------------------------------------

TAG_WEIGHT = torch.tensor([6.0, 8.0, 10.0, 10.0])  # of the positives; about 1 to 5 % of tokens


def masked_bce(logit, target, pos_weight=None):
    """Mean binary cross-entropy over the targets that are set; 0 if none is."""
    known = ~torch.isnan(target)
    if not known.any():
        return logit.sum() * 0
    loss = F.binary_cross_entropy_with_logits(
        logit, torch.nan_to_num(target), reduction="none",
        pos_weight=None if pos_weight is None else pos_weight.to(logit.device))
    return loss[known].mean()


def ranking(logit, target, groups):
    """Within a group an asking case should score above a clear one."""
    same = torch.tensor([[a == b for b in groups] for a in groups], device=logit.device)
    pairs = same & (target[:, None] == 1) & (target[None] == 0)
    if not pairs.any():
        return logit.sum() * 0
    return F.softplus(1 - (logit[:, None] - logit[None]))[pairs].mean()


def losses(out: Output, batch: Batch) -> dict[str, torch.Tensor]:
    """The weighted parts of the loss, by name."""
    return {
        "gate1": masked_bce(out.gate1, batch.pre),
        "gate2": masked_bce(out.gate2, batch.post),
        "rank1": 0.25 * ranking(out.gate1, batch.pre, batch.groups),
        "rank2": 0.25 * ranking(out.gate2, batch.post, batch.groups),
        "tags": masked_bce(out.tags, batch.tags, pos_weight=TAG_WEIGHT),
        "answers": 0.5 * masked_bce(out.passage[..., 0], batch.answers),
        "live": 0.5 * masked_bce(out.passage[..., 1], batch.live),
        "pair": 0.5 * masked_bce(out.pair, batch.conflict, pos_weight=torch.tensor(3.0)),
    }
