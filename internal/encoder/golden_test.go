package encoder

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The files of testdata come from the reference implementation, by
// training/encoder_golden.py.

func readGolden[T any](t testing.TB, name string) T {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.NewDecoder(z).Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func unpack[N uint16 | float32](t testing.TB, text string) []N {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]N, len(data)/binary.Size(N(0)))
	if _, err := binary.Decode(data, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	return values
}

// half widens a half-precision number other than infinities and NaN.
func half(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	if exponent == 0 {
		exponent, fraction = 1, fraction-1024
	}
	return math.Copysign(math.Ldexp(1024+fraction, exponent-25), 1-2*float64(h>>15))
}

func TestTokensAgainstReference(t *testing.T) {
	rows := readGolden[[]struct {
		Text []byte
		IDs  []int32
	}](t, "tokens.json.gz")
	if len(rows) != 2000 {
		t.Fatalf("%d strings, want 2000", len(rows))
	}
	tokenizer := minilmWith(t, portable).Tokenizer()
	wrong := 0
	for _, row := range rows {
		var got []int32
		for _, token := range tokenizer.Tokenize(string(row.Text)) {
			got = append(got, token.ID)
		}
		if !slices.Equal(got, row.IDs) {
			wrong++
			t.Errorf("%q:\n got %v\nwant %v", row.Text, got, row.IDs)
		}
		if n := tokenizer.Count(string(row.Text)); n != len(row.IDs) {
			t.Errorf("%q: Count = %d, want %d", row.Text, n, len(row.IDs))
		}
		if wrong > 5 {
			t.Fatal("and more")
		}
	}
}

// The shipped weights are int8; the reference vectors come from the original
// float32 ones.
func TestEmbeddingsAgainstReference(t *testing.T) {
	rows := readGolden[[]struct {
		Text   string
		Vector string
	}](t, "embeddings.json.gz")
	if len(rows) != 200 {
		t.Fatalf("%d texts, want 200", len(rows))
	}
	if available()[0] == portable {
		rows = rows[:20] // short ones; the rest would take a minute
	}
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = row.Text
	}
	worst, err := worstCosine(t, NewEmbedder(minilmWith(t, available()[0])), texts, func(i int) string { return rows[i].Vector })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("worst cosine %.5f", worst)
	if worst < 0.995 {
		t.Errorf("the worst cosine is %.5f, want at least 0.995", worst)
	}
}

func worstCosine(t *testing.T, e *Embedder, texts []string, vector func(i int) string) (float64, error) {
	got, err := e.EmbedDocuments(context.Background(), texts)
	if err != nil {
		return 0, err
	}
	worst := 1.0
	for i := range texts {
		var dot, square float64
		for j, h := range unpack[uint16](t, vector(i)) {
			v := half(h)
			dot += v * float64(got[i][j])
			square += v * v
		}
		worst = min(worst, dot/math.Sqrt(square))
	}
	return worst, nil
}

// goldenModel gives a model of testdata on one implementation, with its adapter.
func goldenModel(t *testing.T, name string, k *kernels) (*Model, *Adapter) {
	t.Helper()
	folder := os.DirFS(filepath.Join("testdata", name))
	var m *Model
	if name == "minilm" {
		m = minilmWith(t, k)
	} else {
		var err error
		if m, err = load(folder, k); err != nil {
			t.Fatal(err)
		}
	}
	sub, err := fs.Sub(folder, "adapter")
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.LoadAdapter(sub)
	if err != nil {
		t.Fatal(err)
	}
	return m, a
}

// goldenTolerance bounds the largest difference of any hidden state; states
// are about 1 in size.
var goldenTolerance = map[string]float64{"random3": 1e-5, "random12": 1e-5, "minilm": 2e-5}

// TestStatesAgainstReference covers float32 (random3), float16 (random12) and
// int8 weights (minilm), adapters of all layers with and without rank
// stabilisation, of some layers, and joint attention.
func TestStatesAgainstReference(t *testing.T) {
	for name, tolerance := range goldenTolerance {
		cases := readGolden[[]struct {
			Sequences []Sequence
			Joint     int
			Adapter   bool
			States    string
		}](t, filepath.Join(name, "cases.json.gz"))
		t.Run(name, func(t *testing.T) {
			eachKernels(t, func(t *testing.T, k *kernels) {
				m, a := goldenModel(t, name, k)
				for i, c := range cases {
					o := Options{Joint: c.Joint}
					if c.Adapter {
						o.Adapter = a
					}
					got, err := m.Forward(context.Background(), c.Sequences, o)
					if err != nil {
						t.Fatal(err)
					}
					want := unpack[float32](t, c.States)
					flat := slices.Concat(got...)
					if len(flat) != len(want) {
						t.Fatalf("case %d: %d floats, want %d", i, len(flat), len(want))
					}
					var worst float64
					for j := range want {
						worst = max(worst, math.Abs(float64(flat[j]-want[j])))
					}
					t.Logf("case %d (joint %d, adapter %v): largest difference %.2g", i, c.Joint, c.Adapter, worst)
					if !(worst <= tolerance) {
						t.Errorf("case %d (joint %d, adapter %v): largest difference %g, want at most %g", i, c.Joint, c.Adapter, worst, tolerance)
					}
				}
			})
		})
	}
}
