package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/askback/askback/conversation"
)

// Ask is the field askback of a request. All of it may be left out.
type Ask struct {
	// Conversation is the id of a conversation that is kept under it. Without, the
	// dialogue that is sent says which one it is.
	Conversation string `json:"conversation,omitempty"`
	// User is who writes, where the server does not know it by itself.
	User string `json:"user,omitempty"`
	// Choice is the id of an option of the clarification that waits: a click. The
	// last message may then be the clarification; one of the user after it is kept as
	// what the user wrote.
	Choice string `json:"choice,omitempty"`
	// Clarification is the id of the clarification that the message replies to. A
	// reply to one that waits no more is then refused.
	Clarification string `json:"clarification,omitempty"`
	// Key names the message in its conversation: sent again it is the same turn.
	Key string `json:"key,omitempty"`
	// Trace asks for the turn's trace in the reply.
	Trace bool `json:"trace,omitempty"`
}

// request is what is read of a request.
type request struct {
	model    string
	stream   bool
	usage    bool // include_usage
	ask      Ask
	dialogue []exchange
	text     string // the user's message
}

// body is a request as it is sent. What is not here has no effect.
type body struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	N              *int            `json:"n"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	FunctionCall   json.RawMessage `json:"function_call"`
	ResponseFormat *struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Logprobs   bool            `json:"logprobs"`
	Modalities []string        `json:"modalities"`
	Audio      json.RawMessage `json:"audio"`
	Askback    json.RawMessage `json:"askback"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// part is a piece of a message's content.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// read reads a request and refuses what cannot be done.
func read(r *http.Request, limit int64) (*request, *Error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "", "unsupported_media_type", "the request's Content-Type must be application/json")
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "", "request_too_large", fmt.Sprintf("the request is larger than %d bytes; send fewer messages of the dialogue", limit))
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "", "unreadable", fmt.Sprintf("reading the request: %v", err))
	}
	return parse(data)
}

// parse reads a request's JSON.
func parse(data []byte) (*request, *Error) {
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		field := ""
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			field = kind.Field
		}
		return nil, refuse(http.StatusBadRequest, field, "invalid_json", fmt.Sprintf("the request is not as it should be: %v", err))
	}
	if e := b.refused(); e != nil {
		return nil, e
	}
	r := &request{model: b.Model, stream: b.Stream, usage: b.StreamOptions != nil && b.StreamOptions.IncludeUsage}
	if isSet(b.Askback) {
		d := json.NewDecoder(bytes.NewReader(b.Askback))
		d.DisallowUnknownFields()
		if err := d.Decode(&r.ask); err != nil {
			return nil, refuse(http.StatusBadRequest, "askback", "invalid_value", fmt.Sprintf("askback: %v; it may hold conversation, user, choice, clarification, key and trace", err))
		}
	}
	if c := r.ask.Conversation; c != "" {
		if err := conversation.CheckID(c); err != nil {
			return nil, refuse(http.StatusBadRequest, "askback.conversation", "invalid_value", err.Error())
		}
	} else if r.ask.Key != "" {
		return nil, refuse(http.StatusBadRequest, "askback.key", "invalid_value", "a key names a message in its conversation; send askback.conversation with it")
	}
	return r, r.converse(b.Messages)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// refused says what of a request would have to have an effect and cannot.
func (b *body) refused() *Error {
	no := func(param, message string) *Error {
		return refuse(http.StatusBadRequest, param, "unsupported_value", message)
	}
	switch {
	case b.N != nil && *b.N != 1:
		return no("n", fmt.Sprintf("n is %d; there is one answer to a question, so n must be 1", *b.N))
	case demands(b.ToolChoice):
		return no("tool_choice", "tools are never called here, so tool_choice must be none or auto")
	case demands(b.FunctionCall):
		return no("function_call", "functions are never called here, so function_call must be none or auto")
	case b.ResponseFormat != nil && b.ResponseFormat.Type != "" && b.ResponseFormat.Type != "text":
		return no("response_format", fmt.Sprintf("answers are text, so response_format %q is not possible; the field askback of the reply holds it in fields", b.ResponseFormat.Type))
	case b.Logprobs:
		return no("logprobs", "there are no log probabilities")
	case isSet(b.Audio):
		return no("audio", "answers are text; there is no audio")
	}
	for _, m := range b.Modalities {
		if m != "text" {
			return no("modalities", fmt.Sprintf("answers are text; there is no %s", m))
		}
	}
	return nil
}

// demands reports whether a choice of tools wants one called.
func demands(choice json.RawMessage) bool {
	var s string
	if !isSet(choice) || json.Unmarshal(choice, &s) == nil && (s == "" || s == "none" || s == "auto") {
		return false
	}
	return true
}

// converse sorts the messages into the dialogue and the user's message.
func (r *request) converse(messages []message) *Error {
	var said *exchange // by the user, not answered yet
	for i, m := range messages {
		at := fmt.Sprintf("messages.[%d]", i)
		switch m.Role {
		case "user", "assistant":
		case "system", "developer":
			continue
		case "tool", "function":
			return refuse(http.StatusBadRequest, at+".role", "unsupported_value", "tools are never called here, so there can be no result of one")
		default:
			return refuse(http.StatusBadRequest, at+".role", "invalid_value", fmt.Sprintf("the role %q is none; there are user, assistant, system and developer", m.Role))
		}
		text, e := content(m.Content, at+".content")
		if e != nil {
			return e
		}
		switch {
		case m.Role == "user":
			said = &exchange{user: text}
		case strings.TrimSpace(text) == "": // a call of a tool, or a reply that never came
		case said != nil:
			r.dialogue = append(r.dialogue, exchange{said.user, text})
			said = nil
		case len(r.dialogue) > 0: // a second message after the first
			last := &r.dialogue[len(r.dialogue)-1]
			last.assistant += "\n\n" + text
		}
	}
	switch {
	case said != nil:
		r.text = said.user
	case r.ask.Choice == "":
		return refuse(http.StatusBadRequest, "messages", "invalid_value", "the last message must be the user's")
	}
	return nil
}

// content is the text of a message, with plain line ends.
func content(raw json.RawMessage, at string) (string, *Error) {
	text, e := parts(raw, at)
	return strings.ReplaceAll(text, "\r\n", "\n"), e
}

// parts joins the parts of a content.
func parts(raw json.RawMessage, at string) (string, *Error) {
	var text string
	if !isSet(raw) || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var all []part
	if err := json.Unmarshal(raw, &all); err != nil {
		return "", refuse(http.StatusBadRequest, at, "invalid_value", fmt.Sprintf("the content is neither text nor a list of parts: %v", err))
	}
	var texts []string
	for i, p := range all {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		default:
			return "", refuse(http.StatusBadRequest, fmt.Sprintf("%s.[%d]", at, i), "unsupported_value", fmt.Sprintf("only text can be read here, not a part of the type %q", p.Type))
		}
	}
	return strings.Join(texts, "\n"), nil
}
