package server

import (
	"context"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
)

// maxBody is the longest body of JSON that is taken, in bytes.
const maxBody = 256 << 10

// config is what huma makes of the API.
func config(version string) huma.Config {
	if version == "" {
		version = "0"
	}
	c := huma.DefaultConfig("askback", version)
	c.Info.Description = "Answers questions from your documents, with citations, and asks back when answering would be a guess."
	c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", nil
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	json := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode}
	c.Formats = map[string]huma.Format{"application/json": json, "json": json}
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{func(_ huma.Context, _ string, v any) (any, error) {
		if e, ok := v.(*huma.ErrorModel); ok {
			return invalid(e), nil
		}
		return v, nil
	}}
	return c
}

// invalid is huma's finding in a request as a problem.
func invalid(e *huma.ErrorModel) *Problem {
	p := problem(e.Status, "invalid", e.Detail)
	switch e.Status {
	case http.StatusRequestEntityTooLarge:
		p.Code = "too_long"
	case http.StatusInternalServerError:
		p.Code = "failed"
	}
	for _, d := range e.Errors {
		if slices.ContainsFunc(p.Errors, func(told *huma.ErrorDetail) bool { return within(told.Location, d.Location) }) {
			continue // it follows from the other, or is the same in other words
		}
		if text, ok := d.Value.(string); ok && len(text) > 100 {
			d.Value = nil // who sent it has it
		}
		if p.Detail += ": "; len(p.Errors) > 0 {
			p.Detail = strings.TrimSuffix(p.Detail, ": ") + "; "
		}
		if p.Detail += d.Message; d.Location != "" {
			p.Detail += " (" + d.Location + ")"
		}
		p.Errors = append(p.Errors, d)
	}
	return p
}

// within reports whether a place in a request is another one or a part of it.
func within(place, other string) bool {
	rest, ok := strings.CutPrefix(place, other)
	return ok && other != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// schemaName names a type in the description, with its package if that is not
// this one.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	from := path.Base(t.PkgPath())
	if t.Name() == "" || from == "server" || from == "." || from == "v2" {
		return name
	}
	return string(unicode.ToUpper(rune(from[0]))) + from[1:] + name
}

// handle registers an operation whose errors are problems.
func handle[I, O any](s *Server, o huma.Operation, f func(context.Context, *I) (*O, error)) {
	describe(s, &o)
	huma.Register(s.api, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return out, nil
	})
}

// describe adds what all operations have.
func describe(s *Server, o *huma.Operation) {
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = maxBody
	}
	if o.BodyReadTimeout == 0 {
		o.BodyReadTimeout = s.o.BodyTime
	}
	if o.Responses == nil {
		o.Responses = map[string]*huma.Response{}
	}
	o.Responses["default"] = &huma.Response{Description: "A problem", Content: map[string]*huma.MediaType{
		problemType: {Schema: s.schema(Problem{}, "Problem")},
	}}
}

// nullable says in a description that properties may be null, which huma does not
// of objects.
func nullable(s *huma.Schema, names ...string) *huma.Schema {
	for _, name := range names {
		s.Properties[name] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties[name], {Type: "null"}}, Description: s.Properties[name].Description}
	}
	return s
}

// schema is the description of v's type.
func (s *Server) schema(v any, hint string) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, hint)
}
