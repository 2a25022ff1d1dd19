package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/askback/askback/retrieval"
)

// maxJSONDepth is how deep values may stand in each other.
const maxJSONDepth = 200

// loadJSON reads JSON: each object of an array is a record, and so is each
// object or array of objects in the outermost object, under its key as heading.
func loadJSON(ctx context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}
	decoder := newDecoder(text)
	var values []any
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := decodeValue(decoder, 0)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, jsonError(text, decoder, err)
		}
		values = append(values, v)
	}
	if len(values) != 1 {
		addRecords(d, nil, "item ", values)
		return nil, nil
	}
	switch v := values[0].(type) {
	case []any:
		addRecords(d, nil, "item ", v)
	case object:
		addObject(d, v)
	default:
		d.Blocks = append(d.Blocks, retrieval.Block{Text: fmt.Sprint(v)})
	}
	return nil, nil
}

// loadJSONLines reads a JSON value from each line. A line that is not JSON is
// named in a warning.
func loadJSONLines(ctx context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}
	const named = 5
	var warnings []string
	number, bad := 0, 0
	for line := range strings.Lines(text) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		decoder := newDecoder(line)
		v, err := decodeValue(decoder, 0)
		if err == nil {
			if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
				err = errors.New("more than one value")
			}
		}
		if err != nil {
			if bad++; bad <= named {
				warnings = append(warnings, fmt.Sprintf("line %d left out: not valid JSON: %v", number, jsonReason(err)))
			}
			continue
		}
		d.Blocks = append(d.Blocks, recordBlock(nil, fieldsOf("", v), fmt.Sprintf("line %d", number)))
	}
	if bad > named {
		warnings = append(warnings, fmt.Sprintf("%d more lines left out: not valid JSON", bad-named))
	}
	if bad > 0 && len(d.Blocks) == 0 {
		return nil, errors.New("no line is valid JSON: " + warnings[0])
	}
	return warnings, nil
}

// object is a JSON object with its members in order.
type object []member

type member struct {
	name  string
	value any // string, json.Number, bool, nil, []any or object
}

func newDecoder(text string) *json.Decoder {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d
}

var errJSONDepth = fmt.Errorf("values nested more than %d deep", maxJSONDepth)

// decodeValue reads the next value, with the members of objects in order.
func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxJSONDepth {
		return nil, errJSONDepth
	}
	array, members := []any{}, object{}
	for d.More() {
		var name string
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, unexpectedEnd(err)
			}
			name, _ = key.(string)
		}
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, unexpectedEnd(err)
		}
		if delim == '{' {
			members = append(members, member{name, v})
		} else {
			array = append(array, v)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, unexpectedEnd(err)
	}
	if delim == '{' {
		return members, nil
	}
	return array, nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// jsonError names the line at which the text stops being JSON.
func jsonError(text string, d *json.Decoder, err error) error {
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		offset = int64(len(text))
	}
	line := 1 + bytes.Count([]byte(text[:min(offset, int64(len(text)))]), []byte("\n"))
	return fmt.Errorf("not valid JSON: line %d: %v", line, jsonReason(err))
}

func jsonReason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// addRecords adds a block for each value.
func addRecords(d *retrieval.Document, headings []string, place string, values []any) {
	for i, v := range values {
		d.Blocks = append(d.Blocks, recordBlock(headings, fieldsOf("", v), place+strconv.Itoa(i+1)))
	}
}

// addObject adds a block for the plain members of the outermost object and one
// for each record that stands in it.
func addObject(d *retrieval.Document, o object) {
	var plain []field
	for _, m := range o {
		if m.name == "title" && d.Title == "" {
			if title, ok := m.value.(string); ok && len(title) <= maxHeading {
				d.Title = title
			}
		}
		switch v := m.value.(type) {
		case []any:
			if len(v) == 0 || !areObjects(v) {
				plain = append(plain, fieldsOf(m.name, v)...)
			}
		case object:
		default:
			plain = append(plain, fieldsOf(m.name, v)...)
		}
	}
	d.Blocks = append(d.Blocks, retrieval.Block{Text: record(plain)})
	for _, m := range o {
		headings := []string{m.name}
		switch v := m.value.(type) {
		case []any:
			if len(v) > 0 && areObjects(v) {
				addRecords(d, headings, m.name+" ", v)
			}
		case object:
			d.Blocks = append(d.Blocks, retrieval.Block{Headings: headings, Text: record(fieldsOf("", v)), Place: m.name})
		}
	}
}

func areObjects(values []any) bool {
	for _, v := range values {
		if _, ok := v.(object); !ok {
			return false
		}
	}
	return true
}

// fieldsOf gives the values in v by name, with the names of those around them
// as far as these are short.
func fieldsOf(name string, v any) []field {
	const longest = 200 // bytes
	if _, plain := plainText(v); !plain && len(name) > longest {
		return append([]field{{value: name}}, fieldsOf("", v)...)
	}
	join := func(part string) string {
		if name == "" {
			return part
		}
		return name + "." + part
	}
	switch v := v.(type) {
	case object:
		var fields []field
		for _, m := range v {
			fields = append(fields, fieldsOf(join(m.name), m.value)...)
		}
		return fields
	case []any:
		var plain []string
		var fields []field
		for i, item := range v {
			if text, ok := plainText(item); !ok {
				fields = append(fields, fieldsOf(join(strconv.Itoa(i+1)), item)...)
			} else if text != "" {
				plain = append(plain, text)
			}
		}
		if len(plain) > 0 {
			fields = append([]field{{name, strings.Join(plain, ", ")}}, fields...)
		}
		return fields
	}
	text, _ := plainText(v)
	return []field{{name, text}}
}

// plainText gives a value as text; ok is false for objects and arrays.
func plainText(v any) (text string, ok bool) {
	switch v := v.(type) {
	case object, []any:
		return "", false
	case nil:
		return "", true
	default:
		return fmt.Sprint(v), true
	}
}
