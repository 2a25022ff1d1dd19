package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/askback/askback/internal/untrusted"
)

// Schema is the JSON schema of a reply, with the bound that keeps a model from
// going on without end.
var Schema = json.RawMessage(`{"type":"object","properties":{"clarification":{"type":"string","title":"clarification","maxLength":600}},"required":["clarification"],"title":"QueryClarificationOutput"}`)

// Clear is what a reply says instead of a clarification when nothing needs
// asking.
const Clear = "CLEAR"

// Limit is the most tokens that a reply may have.
const Limit = 1024

// longest is the longest clarification taken, in bytes: a longer one is no
// question that a person would read.
const longest = 1200

// ErrReply says that a model's reply does not keep the contract.
var ErrReply = errors.New("the model's reply is not a clarification")

const thoughtTag = `(?:think|thinking|thought|thoughts|reasoning|reflection)`

var (
	thought      = regexp.MustCompile(`(?is)<` + thoughtTag + `>.*?</` + thoughtTag + `>`)
	thoughtOpen  = regexp.MustCompile(`(?is)<` + thoughtTag + `>.*`)
	thoughtClose = regexp.MustCompile(`(?is)^.*</` + thoughtTag + `>`)
	fence        = regexp.MustCompile("(?m)^[ \t]*```[a-zA-Z]*[ \t]*$")
	clearWord    = regexp.MustCompile(`(?i)^\W*clear\W*$`)
	// link matches what no clarification gives, as it names no secret: a passage
	// may have talked the model into it.
	link = regexp.MustCompile(`(?i)\b(?:https?://|www\.)\S+`)
)

// Read reads a reply: a JSON object whose "clarification" is CLEAR or what is
// to be asked. Thoughts before it are left out whole, also ones that are never
// closed or only closed; words and fences around the object are no fault. Two
// objects that disagree, an empty or cut one, and a clarification that asks for
// a secret or gives a link are ErrReply. said is what the user wrote: only what
// stands there may be asked about so.
func Read(text, said string) (clarification string, clear bool, err error) {
	text = strings.ToValidUTF8(text, "")
	text = thought.ReplaceAllString(text, "")
	text = thoughtOpen.ReplaceAllString(text, "")
	text = thoughtClose.ReplaceAllString(text, "")
	text = strings.TrimSpace(fence.ReplaceAllString(text, ""))
	found, err := object(text)
	if err != nil {
		return "", false, err
	}
	clarification = tidy(found)
	switch {
	case clarification == "":
		return "", false, fmt.Errorf("%w: it is empty", ErrReply)
	case clearWord.MatchString(clarification):
		return "", true, nil
	case len(clarification) > longest:
		return "", false, fmt.Errorf("%w: it has %d bytes", ErrReply, len(clarification))
	case !strings.ContainsFunc(clarification, unicode.IsLetter):
		return "", false, fmt.Errorf("%w: it has no word", ErrReply)
	case foreign(untrusted.Secrets(clarification), said):
		return "", false, fmt.Errorf("%w: it asks for a secret", ErrReply)
	case foreign(link.FindAllString(clarification, -1), said):
		return "", false, fmt.Errorf("%w: it gives a link", ErrReply)
	}
	return clarification, false, nil
}

// foreign reports whether one of the words is none that the user wrote.
func foreign(words []string, said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(said, strings.ToLower(w)) })
}

// object finds the one clarification in a text.
func object(text string) (string, error) {
	found, count := "", 0
	for at := 0; at < len(text); {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		at += i
		var o struct {
			Clarification *string `json:"clarification"`
		}
		d := json.NewDecoder(strings.NewReader(text[at:]))
		if d.Decode(&o) != nil {
			at++
			continue
		}
		at += int(d.InputOffset())
		if o.Clarification == nil {
			continue
		}
		if count++; count > 1 && *o.Clarification != found {
			return "", fmt.Errorf("%w: it says two different things", ErrReply)
		}
		found = *o.Clarification
	}
	if count == 0 {
		why := "it holds no JSON object with a clarification"
		if text == "" {
			why = "it is empty"
		} else if strings.HasPrefix(text, "{") {
			why = "its JSON is broken or cut"
		}
		return "", fmt.Errorf("%w: %s", ErrReply, why)
	}
	return found, nil
}

// tidy makes a clarification one line of visible text.
func tidy(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\r", " ")
	return strings.Join(strings.Fields(untrusted.WithoutMarks(untrusted.Visible(s))), " ")
}
