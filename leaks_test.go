package askback_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryPackageLooksForLeaks: a package whose tests start goroutines and leave
// them must fail, so each has a TestMain that looks for them.
func TestEveryPackageLooksForLeaks(t *testing.T) {
	tested, looking := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && path != "." && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		tested[dir] = true
		if strings.Contains(string(text), "func TestMain(") && strings.Contains(string(text), "goleak.") {
			looking[dir] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range tested {
		if !looking[dir] {
			t.Errorf("%s has tests and no TestMain with goleak: see main_test.go here", dir)
		}
	}
	if len(tested) < 40 {
		t.Errorf("only %d packages with tests were found", len(tested))
	}
}
