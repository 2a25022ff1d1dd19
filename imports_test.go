package askback_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/askback/askback/"

// house says what each part may import of the others. A part is named by its
// first folder; parts of internal by two. What two stages share is a small
// value type: messages in conversation, passages in retrieval.
var house = map[string][]string{
	"conversation":         {"internal/edit", "internal/encoder", "internal/safetensors"}, // conversation/reply is the reader of replies
	"retrieval":            {"internal/encoder", "internal/edit", "internal/ollama"},      // retrieval/minilm is the embedder
	"gate":                 {"conversation", "retrieval", "internal/encoder", "internal/safetensors", "internal/ollama", "internal/stopwatch", "internal/untrusted"},
	"generation":           {"conversation", "retrieval", "internal/ollama", "internal/untrusted"},
	"pipeline":             {"conversation", "retrieval", "gate", "generation", "internal/untrusted"},
	"server":               {"conversation", "retrieval", "gate", "generation", "pipeline", "internal/untrusted"},
	"internal/encoder":     {"internal/safetensors", "internal/stopwatch"},
	"internal/safetensors": {},
	"internal/gguf":        {"internal/safetensors"},
	"internal/hub":         {},
	"internal/edit":        {},
	"internal/stopwatch":   {},
	"internal/qdranttest":  {},
	"internal/ollama":      {},
	"internal/untrusted":   {},
	"internal/ollamatest":  {},  // for tests
	"cmd":                  nil, // wires everything
	"examples":             nil,
	"training":             nil, // programs that make the clarifier
	"bench":                nil,
}

// edges are outside systems and heavy libraries; each may be imported only
// under its folder, never by a stage's core.
var edges = map[string][]string{
	"modernc.org/sqlite":              {"conversation/sqlite", "conversation/internal", "retrieval/local", "internal/sqlite"},
	"github.com/qdrant/go-client":     {"retrieval/qdrant"},
	"google.golang.org/grpc":          {"retrieval/qdrant", "internal/qdranttest"},
	"github.com/jackc/pgx":            {"conversation/postgres"},
	"github.com/pressly/goose":        {"conversation/postgres"},
	"github.com/tmc/langchaingo":      {"generation", "gate/prompted", "pipeline/langchain", "cmd/askback", "examples", "bench/ollama"},
	"github.com/ollama":               {"generation/ollama", "retrieval/ollama", "gate/ollama", "internal/ollama", "cmd/askback", "bench/ollama"},
	"github.com/klippa-app":           {"retrieval/documents"},
	"github.com/joho/godotenv":        {"cmd/askback"},
	"github.com/alecthomas/kong":      {"cmd/askback"},
	"github.com/yuin/goldmark":        {"retrieval/documents"},
	"github.com/JohannesKaufmann":     {"retrieval/documents"},
	"github.com/schollz/progressbar":  {"cmd/askback"},
	"github.com/danielgtaylor/huma":   {"server"},
	"github.com/modelcontextprotocol": {"server/mcp"},
	"github.com/google/jsonschema-go": {"server/mcp"}, // the schemas of MCP's tools and forms
	"go.opentelemetry.io/otel":        {"pipeline/telemetry", "server", "cmd/askback"},
	"github.com/prometheus":           {"cmd/askback"},
}

func part(dir string) string {
	names := strings.Split(dir, "/")
	if names[0] == "internal" && len(names) > 1 {
		return names[0] + "/" + names[1]
	}
	return names[0]
}

func TestImportsPointOneWay(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || dir == "." {
			return nil
		}
		files++
		allowed, known := house[part(dir)]
		if !known {
			t.Errorf("%s: no part of the house is called %q; the layout stands in README.md", path, part(dir))
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, ok := strings.CutPrefix(name, module); ok && allowed != nil && part(ours) != part(dir) && !slices.Contains(allowed, part(ours)) {
				t.Errorf("%s imports %s: %s may import %v only", path, ours, part(dir), allowed)
			}
			for edge, folders := range edges {
				if strings.HasPrefix(name, edge) && !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(dir, f) }) {
					t.Errorf("%s imports %s, which belongs under %v", path, name, folders)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 30 {
		t.Errorf("only %d files were looked at", files)
	}
}

// TestOnlyTheProgramReadsTheEnvironment keeps settings out of the library.
func TestOnlyTheProgramReadsTheEnvironment(t *testing.T) {
	forbidden := []string{"os." + "Getenv(", "os." + "LookupEnv(", "log." + "Fatal", "fmt." + "Println(", "fmt." + "Printf("}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		switch part(filepath.ToSlash(filepath.Dir(path))) {
		case "cmd", "examples", "training", "bench":
			return nil
		}
		if p := filepath.ToSlash(path); strings.Contains(p, "internal/encoder/asm/") || strings.Contains(p, "internal/ollamatest/") || strings.Contains(p, "internal/qdranttest/") || strings.Contains(p, "conversation/storetest/") || strings.Contains(p, "conversation/postgres/postgrestest/") {
			return nil // a program that writes assembly, and parts of tests
		}
		data, err := os.ReadFile(path)
		for _, f := range forbidden {
			if strings.Contains(string(data), f) {
				t.Errorf("%s calls %s...: a library package neither reads the environment nor prints nor exits", path, f)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
