"""Talks to the server at sys.argv[1] with OpenAI's official client for Python and
prints what it got, as a JSON object."""
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
out = {"models": [m.id for m in client.models.list()], "model": client.models.retrieve("askback").owned_by}

dialogue = [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": "What is the deposit?"}]
first = client.chat.completions.create(model="askback", messages=dialogue, temperature=0.3, max_tokens=100)
message = first.choices[0].message
out["asks"] = message.content
out["kind"] = message.askback["kind"]
out["options"] = [o["text"] for o in message.model_extra["askback"]["options"]]
out["finish"] = first.choices[0].finish_reason
out["no_usage"] = first.usage is None  # no model was asked


def counts(usage):
    return [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]


dialogue += [message.model_dump(include={"role", "content"}), {"role": "user", "content": [{"type": "text", "text": "the second"}]}]
text, last, usage = "", None, None
for chunk in client.chat.completions.create(model="askback", messages=dialogue, stream=True, stream_options={"include_usage": True}):
    if chunk.usage:
        usage = counts(chunk.usage)
    for choice in chunk.choices:
        text += choice.delta.content or ""
        if choice.finish_reason:
            last = choice
out["streamed"], out["usage"] = text, usage
out["streamed_finish"], out["streamed_kind"] = last.finish_reason, last.delta.askback["kind"]

named = client.chat.completions.create(
    model="askback", messages=[{"role": "user", "content": "What is the deposit?"}], extra_body={"askback": {"conversation": "python"}})
clicked = client.chat.completions.create(
    model="askback", messages=[{"role": "user", "content": "City"}],
    extra_body={"askback": {"conversation": "python", "choice": "1", "clarification": named.choices[0].message.askback["clarification"]}})
out["whole_usage"] = counts(clicked.usage)
out["clicked"] = clicked.choices[0].message.askback["text"]

for name, request in {
    "n": {"messages": dialogue, "n": 2},
    "model": {"messages": dialogue, "model": "other"},
    "image": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
}.items():
    try:
        client.chat.completions.create(**{"model": "askback"} | request)
    except openai.APIStatusError as e:
        out["refused_" + name] = f"{type(e).__name__} {e.code} {e.param}"
print(json.dumps(out))
