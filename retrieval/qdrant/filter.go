package qdrant

import (
	"slices"
	"strconv"
	"unicode/utf8"

	api "github.com/qdrant/go-client/qdrant"
)

// Every filter of this package is made by mine: what it lets through is the
// tenant's.

// mine is the tenant's points that meet all conditions of must and none of not.
func (s *Store) mine(must, not []*api.Condition) *api.Filter {
	return &api.Filter{Must: append([]*api.Condition{is(fieldTenant, s.options.Tenant)}, must...), MustNot: not}
}

func is(field, value string) *api.Condition { return api.NewMatch(field, value) }

func oneOf(field string, values ...string) *api.Condition {
	if len(values) == 1 {
		return is(field, values[0])
	}
	return api.NewMatchKeywords(field, values...)
}

// anyOf is met if one of the conditions is.
func anyOf(conditions ...*api.Condition) *api.Condition {
	if len(conditions) == 1 {
		return conditions[0]
	}
	return api.NewFilterAsCondition(&api.Filter{Should: conditions})
}

// allOf is met if all of must are and none of not is.
func allOf(must, not []*api.Condition) *api.Condition {
	if len(must) == 1 && len(not) == 0 {
		return must[0]
	}
	return api.NewFilterAsCondition(&api.Filter{Must: must, MustNot: not})
}

// equal gives the conditions of a retrieval.Query's filter; ok is false if no
// passage can meet them.
func equal(filter map[string]string) (conditions []*api.Condition, ok bool) {
	for key, value := range filter {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, false
		}
		conditions = append(conditions, is(fieldPairs, pair(key, value)))
	}
	return conditions, true
}

// pair is a key and a value of the metadata as one keyword, which needs one
// index for all keys and no path into the payload.
func pair(key, value string) string { return strconv.Quote(key) + "=" + value }

func stringList(v *api.Value) []string {
	var out []string
	for _, x := range v.GetListValue().GetValues() {
		out = append(out, x.GetStringValue())
	}
	return out
}

func listOf(texts []string) *api.Value {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	values := make([]*api.Value, len(texts))
	for i, text := range texts {
		values[i] = api.NewValueString(text)
	}
	return api.NewValueList(&api.ListValue{Values: values})
}
