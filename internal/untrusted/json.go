package untrusted

import (
	"encoding/json"
	"strings"
)

// JSON writes v for a prompt, with one space of indentation if indent is set.
// Texts in it can neither end the block that it stands in nor pass for a mark of
// a chat template: <, > and &, and the bracket of a mark, are escaped, which
// loses nothing.
func JSON(v any, indent bool) (string, error) {
	data, err := json.Marshal(v)
	if indent {
		data, err = json.MarshalIndent(v, "", " ")
	}
	if err != nil {
		return "", err
	}
	// Such a mark stands inside a string: no word of JSON follows a bracket.
	return marks.ReplaceAllStringFunc(string(data), func(m string) string {
		return strings.ReplaceAll(m, "[", `\u005b`)
	}), nil
}
