package documents

import "testing"

func TestRecordBlock(t *testing.T) {
	for _, tc := range []struct {
		name, heading, text string
		fields              []field
	}{
		{"a title and a text", "Card", "It costs 9 euros.", []field{{"title", "Card"}, {"Text", "It costs 9 euros."}}},
		{"an empty field beside them", "Card", "It costs 9 euros.", []field{{"title", "Card"}, {"text", "It costs 9 euros."}, {"note", " "}}},
		{"a question and its answer", "Is it open?", "Yes.", []field{{"question", "Is it open?"}, {"answer", "Yes."}}},
		{"more than that", "Card", "title: Card; text: Nine.; fee: 9", []field{{"title", "Card"}, {"text", "Nine."}, {"fee", "9"}}},
		{"a code stays with its text", "E1", "code: E1; text: full", []field{{"code", "E1"}, {"text", "full"}}},
		{"two texts", "Card", "title: Card; text: a; body: b", []field{{"title", "Card"}, {"text", "a"}, {"body", "b"}}},
	} {
		b := recordBlock(nil, tc.fields, "")
		if b.Text != tc.text || len(b.Headings) != 1 || b.Headings[0] != tc.heading {
			t.Errorf("%s: %q under %q, want %q under %q", tc.name, b.Text, b.Headings, tc.text, tc.heading)
		}
	}
}
