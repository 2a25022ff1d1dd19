package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"go.uber.org/goleak"
)

// TestMain lets the test binary serve as the program in scripts.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testscript.Main(leakless{m}, map[string]func(){"askback": main})
}

// leakless fails if goroutines are left after the tests.
type leakless struct{ *testing.M }

func (m leakless) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// slow is a time limit for the gates that a loaded machine under the race
// detector keeps too.
const slow = "1m"

// TestScripts runs the command lines of testdata/script: what the program
// prints where, its exit codes, and what it leaves on the disk.
func TestScripts(t *testing.T) { testscript.Run(t, params("testdata/script")) }

// params are how the scripts of a folder are run.
func params(dir string) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ASKBACK_GATE_TIMEOUT", slow)
			e.Setenv("POSTGRES", os.Getenv("ASKBACK_TEST_POSTGRES"))
			e.Setenv("UNIQUE", fmt.Sprint("test-", time.Now().UnixNano()))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "postgres" {
				return os.Getenv("ASKBACK_TEST_POSTGRES") != "", nil
			}
			return false, fmt.Errorf("no such condition: %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// code N program args: runs the program and wants that exit code.
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N program [args]")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				err = ts.Exec(args[1], args[2:]...)
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					got = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if got != want {
					ts.Fatalf("exit code %d, want %d", got, want)
				}
			},
		},
	}
}
