package prepare

import (
	"math"
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
