package prepare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestUnit(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, v := range [][]float32{nil, {}, {0, 0}, {1, nan}, {inf, 1}} {
		if got, err := Unit(v); err == nil {
			t.Errorf("Unit(%v) = %v, want an error", v, got)
		}
	}
	if got, err := Unit([]float32{3e30, -4e30}); err != nil || math.Abs(float64(got[0])-0.6) > 1e-6 || math.Abs(float64(got[1])+0.8) > 1e-6 {
		t.Errorf("unit: %v, %v", got, err)
	}
}

func TestTexts(t *testing.T) {
	long := strings.Repeat("é", maxQuery) // 2 bytes each
	got := Texts([]string{" a ", "", "a", "b\xff", "\x00", long})
	if len(got) != 3 || got[0] != "a" || got[1] != "b\uFFFD" || len(got[2]) > maxQuery+1 || strings.Contains(got[2], "\uFFFD") {
		t.Errorf("Texts gives %.80q", got)
	}
}

// TestWanted counts the identifiers that are looked up: all of a text that
// somebody may write, and those at the ends of a list or a log.
func TestWanted(t *testing.T) {
	codes := func(format string, from, to int) (all []string) {
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(format, i))
		}
		return all
	}
	log := strings.Join(codes("ERR-%04d", 0, 900), " ")
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a list":               {strings.Join(codes("ERR-%04d", 0, 200), " "), codes("ERR-%04d", 0, 200)},
		"a log":                {log, append(codes("ERR-%04d", 0, 32), codes("ERR-%04d", 868, 900)...)},
		"the same over again":  {strings.Repeat("ERR-0007 ", 800) + "AX-100", []string{"ERR-0007", "AX-100"}},
		"one among quantities": {strings.Join(codes("over %d items", 1100, 1300), ", ") + " ERR-5172 " + strings.Join(codes("over %d items", 1300, 1500), ", "), []string{"ERR-5172"}},
	} {
		var got []string
		for _, id := range Wanted([]string{c.text}, func(string) bool { return false }) {
			got = append(got, id.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d wanted, %q, want %d", name, len(got), got, len(c.want))
		}
	}
	if got := Wanted([]string{strings.Join(codes("over %d items", 1100, 1900), " ")}, func(string) bool { return true }); len(got) != manyIdentifiers {
		t.Errorf("%d that may be identifiers are looked up, want %d", len(got), manyIdentifiers)
	}
}
