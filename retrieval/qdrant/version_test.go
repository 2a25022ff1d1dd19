package qdrant

import "testing"

func TestVersions(t *testing.T) {
	for version, test := range map[string]struct{ warned, refused bool }{
		"1.17.1": {}, "v1.18.0": {}, "1.16.0-dev": {}, "1.19.0": {warned: true}, "2.0.0": {warned: true},
		"odd": {warned: true}, "": {warned: true}, "1.15.5": {refused: true, warned: true}, "0.11.0": {refused: true, warned: true},
	} {
		s := &Store{version: version}
		if err := s.checkVersion(); (err != nil) != test.refused {
			t.Errorf("%q: %v, refused should be %v", version, err, test.refused)
		}
		if _, warning := s.ServerVersion(); (warning != "") != test.warned {
			t.Errorf("%q: warning %q, warned should be %v", version, warning, test.warned)
		}
	}
}
