package untrusted

import (
	"regexp"
	"strings"
)

// marks match what chat templates set messages apart with: those of ChatML,
// Llama, Granite, Gemma, Mistral, DeepSeek, Phi, Cohere and their kin, the tags
// of thoughts and tool calls, and the marks of encoders. A server reads them as
// its own wherever they stand in a prompt.
var marks = regexp.MustCompile(`(?i)[<＜][|｜][^<>＜＞|｜\n]{1,40}[|｜][>＞]` +
	`|[<＜]\s?[|｜]\s?(?:im_start|im_end|start_of_role|end_of_role|end_of_text|eot_id|start_header_id|end_header_id|endoftext|system|user|assistant|end)\s?[|｜]\s?[>＞]` +
	`|</?(?:start|end)_of_turn>|</?(?:bos|eos|pad|unk|mask|s)>|<unused\d{1,3}>|<</?SYS>>` +
	`|</?(?:think|thinking|tool_calls?|tool_response|tools|function_calls?)>` +
	`|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SEP|CLS|PAD|MASK|UNK|gMASK)\]`)

// opening are the characters that a mark begins with.
const opening = "<＜["

// nested is how often marks are taken out of the halves of others. Deeper ones
// are none any more: each time leaves a space in them.
const nested = 4

// WithoutMarks gives the text with a space in the place of each mark of a chat
// template, so that the halves around one make no other.
func WithoutMarks(s string) string {
	for range nested {
		if !HasMarks(s) {
			return s
		}
		s = marks.ReplaceAllString(s, " ")
	}
	return s
}

// HasMarks reports whether the text holds a mark of a chat template.
func HasMarks(s string) bool { return strings.ContainsAny(s, opening) && marks.MatchString(s) }
