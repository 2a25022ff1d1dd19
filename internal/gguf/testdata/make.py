"""Makes the models beside it: tiny bases and adapters of random weights as Hugging Face's
libraries save them, and what these libraries say with them (expected.json).

    pip install torch transformers peft && python make.py
"""
import json
import pathlib
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (GraniteConfig, GraniteForCausalLM, GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM,
                          LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast)

HERE = pathlib.Path(__file__).parent
SPECIAL = ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"]
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
           r"\s*[\r\n]+|\s+(?!\S)|\s+")
MERGES = [("i", "s"), ("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("Ġ", "a"), ("o", "u"), ("Ġ", "i"), ("Ġ", "is")]
PROMPTS = ["Which office is it?", "the 123 days\n\tof leave, isn't it's"]
STEPS = 8
SEEDS = dict(llama=21, granite=22, granitemoehybrid=9)


def tokenizer():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    for a, b in MERGES:
        vocab.setdefault(a + b, len(vocab))
    t = Tokenizer(models.BPE(vocab=vocab, merges=MERGES))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, special=True) for s in SPECIAL])
    return PreTrainedTokenizerFast(tokenizer_object=t, eos_token=SPECIAL[0], pad_token=SPECIAL[0],
                                   chat_template="{# granite #}")


TOK = tokenizer()
VOCAB = len(TOK) + 5  # a model has more rows than there are tokens
SHAPE = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=8192, rms_norm_eps=1e-5, bos_token_id=None, eos_token_id=TOK.eos_token_id)
SCALES = dict(embedding_multiplier=3.0, residual_multiplier=0.6, attention_multiplier=0.25, logits_scaling=0.5)
QKVO = ["q_proj", "k_proj", "v_proj", "o_proj"]
CASES = {
    "llama": (LlamaForCausalLM, LlamaConfig(**SHAPE, intermediate_size=64, tie_word_embeddings=False, rope_theta=5000.0),
              dict(r=4, lora_alpha=8, target_modules=QKVO + ["gate_proj", "up_proj", "down_proj"]), torch.bfloat16),
    "granite": (GraniteForCausalLM, GraniteConfig(**SHAPE, **SCALES, intermediate_size=64, tie_word_embeddings=True),
                dict(r=4, lora_alpha=6, use_rslora=True, target_modules=QKVO + ["gate_proj", "up_proj", "down_proj"]), torch.float16),
    "granitemoehybrid": (GraniteMoeHybridForCausalLM, GraniteMoeHybridConfig(
        **SHAPE, **SCALES, intermediate_size=64, shared_intermediate_size=64, num_local_experts=0, num_experts_per_tok=0,
        layer_types=["attention"] * 2, mamba_n_heads=4, mamba_d_head=16, position_embedding_type="rope", tie_word_embeddings=True),
        dict(r=3, lora_alpha=6, target_modules=QKVO + ["input_linear", "output_linear"]), torch.float32),
}


def printable():
    keep = torch.zeros(VOCAB, dtype=torch.bool)
    for word, i in TOK.get_vocab().items():
        text = TOK.convert_tokens_to_string([word])
        keep[i] = word not in SPECIAL and text.isascii() and text.strip().isprintable() and text.strip() != ""
    return keep


def greedy(model):
    out = []
    for prompt in PROMPTS:
        ids = TOK(prompt)["input_ids"]
        said, logprobs, margins = [], [], []
        for _ in range(STEPS):
            with torch.no_grad():
                l = torch.log_softmax(model(torch.tensor([ids + said])).logits[0, -1].float(), -1)
            top = l.topk(2).values
            margins.append(round(float(top[0] - top[1]), 4))  # to the second
            said.append(int(l.argmax()))
            logprobs.append(round(float(l.max()), 5))
        out.append(dict(prompt=prompt, tokens=ids, said=[TOK.convert_tokens_to_string([TOK.convert_ids_to_tokens(i)]) for i in said],
                        logprobs=logprobs, margins=margins))
    return out


def make(name, seed):
    kind, config, lora, dtype = CASES[name]
    torch.manual_seed(seed)
    model = kind(config).float().eval()
    keep = printable()
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.copy_(1 + 0.2 * torch.randn_like(p) if "norm" in n else 0.25 * torch.randn_like(p))
            if n.endswith("embed_tokens.weight") or n.endswith("lm_head.weight"):
                p[~keep] = 0  # nothing else is ever said
    d = HERE / name
    shutil.rmtree(d, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(d / "base", max_shard_size="40KB" if name == "granite" else "5GB")
    TOK.save_pretrained(d / "base")
    base = kind.from_pretrained(d / "base", dtype=torch.float32).eval()
    plain = greedy(base)
    tuned = get_peft_model(base, LoraConfig(**lora, bias="none", task_type="CAUSAL_LM"))
    with torch.no_grad():
        for n, p in tuned.named_parameters():
            if "lora_" in n:
                p.copy_(0.2 * torch.randn_like(p))
    tuned.save_pretrained(d / "adapter")
    f = d / "adapter" / "adapter_model.safetensors"
    save_file({k: v.to(dtype) for k, v in load_file(f).items()}, f)
    (d / "adapter" / "README.md").unlink(missing_ok=True)
    f = d / "adapter" / "adapter_config.json"
    f.write_text(json.dumps(json.loads(f.read_text()) | dict(base_model_name_or_path="tiny/" + name), indent=2) + "\n")
    for extra in ["generation_config.json"]:
        (d / "base" / extra).unlink(missing_ok=True)
    base = kind.from_pretrained(d / "base", dtype=torch.float32).eval()
    with_adapter = greedy(PeftModel.from_pretrained(base, d / "adapter", torch_dtype=torch.float32).eval())
    (d / "expected.json").write_text(json.dumps(dict(base=plain, adapter=with_adapter), indent=1) + "\n")
    return min(min(x["margins"]) for x in plain + with_adapter), with_adapter


# Of forty seeds, those with the widest margins: an answer must not hang on rounding.
for name, seed in SEEDS.items():
    margin, said = make(name, seed)
    print(name, margin, [x["said"] for x in said])
