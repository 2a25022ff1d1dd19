package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines reads messages, one on each line, and keeps from the SDK those that would
// end the session: a line that is no message is refused, and the next is read.
type lines struct {
	in     *bufio.Reader
	refuse func(id any, code int, why string)

	batches bool   // the client's protocol has them
	rest    []byte // of the line that is being given
}

// batching is the version of the protocol with batches.
const batching = "2025-03-26"

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, whole, err := l.next()
		if line = bytes.TrimSpace(line); !whole {
			l.refuse(nil, jsonrpc.CodeInvalidRequest, "the message is longer than 16 MiB")
		} else if len(line) > 0 && l.takes(line) {
			l.rest = append(line, '\n')
		} else if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line. Of one that is too long nothing is kept, and whole is false.
func (l *lines) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= sdk.DefaultMaxLineLength; whole {
			line = append(line, part...)
		} else {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// takes reports whether a line is a message, or a batch of them if the client's
// protocol has batches, and refuses it if not.
func (l *lines) takes(line []byte) bool {
	if !json.Valid(line) {
		l.refuse(nil, jsonrpc.CodeParseError, "the line is not JSON; send each message on a line of its own")
		return false
	}
	if line[0] == '[' {
		if !l.batches || !isBatch(line) {
			l.refuse(nil, jsonrpc.CodeInvalidRequest, "the line is not one message; send each on a line of its own")
			return false
		}
		return true
	}
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		var named struct {
			ID any `json:"id"`
		}
		_ = json.Unmarshal(line, &named) // what is no object has no id
		switch named.ID.(type) {
		case string, float64:
		default:
			named.ID = nil
		}
		l.refuse(named.ID, jsonrpc.CodeInvalidRequest, err.Error())
		return false
	}
	if r, ok := message.(*jsonrpc.Request); ok && r.Method == "initialize" {
		var hello struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(r.Params, &hello) // the SDK says what is wrong with it
		l.batches = hello.ProtocolVersion == batching
	}
	return true
}

// isBatch reports whether an array holds messages, at least one, no id twice.
func isBatch(line []byte) bool {
	var all []json.RawMessage
	if json.Unmarshal(line, &all) != nil || len(all) == 0 {
		return false
	}
	var ids []jsonrpc.ID
	for _, raw := range all {
		message, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			return false
		}
		if r, ok := message.(*jsonrpc.Request); ok && r.ID.IsValid() {
			if slices.Contains(ids, r.ID) {
				return false
			}
			ids = append(ids, r.ID)
		}
	}
	return true
}

// refusal is the answer to what is no message.
func refusal(id any, code int, why string) []byte {
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}}) // no value of these can fail
	return append(data, '\n')
}
