package main

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// image is what the Dockerfile says of the image.
type image struct {
	build       instructions.Stage
	run         []string // the commands of the build
	user        string
	workdir     string
	env         map[string]string
	volumes     []string
	entrypoint  []string
	command     []string
	healthcheck []string
}

func readDockerfile(t *testing.T) image {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(readText(t, "../../Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Warnings) > 0 {
		t.Errorf("%+v", parsed.Warnings)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, text string, _ []parser.Range) {
		t.Errorf("%s: %s (%s)", rule, text, description)
	}})
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 || stages[1].BaseName != "scratch" || !strings.Contains(stages[0].BaseName, ":1.") {
		t.Fatalf("%d stages, the last from %s, the first from %s; want a pinned Go and scratch", len(stages), stages[len(stages)-1].BaseName, stages[0].BaseName)
	}
	im := image{build: stages[0], env: map[string]string{}}
	for _, c := range stages[0].Commands {
		if r, ok := c.(*instructions.RunCommand); ok {
			im.run = append(im.run, strings.Join(r.CmdLine, " "))
		}
	}
	for _, c := range stages[1].Commands {
		switch c := c.(type) {
		case *instructions.UserCommand:
			im.user = c.User
		case *instructions.WorkdirCommand:
			im.workdir = c.Path
		case *instructions.EnvCommand:
			for _, kv := range c.Env {
				im.env[kv.Key] = kv.Value
			}
		case *instructions.VolumeCommand:
			im.volumes = c.Volumes
		case *instructions.EntrypointCommand:
			im.entrypoint = c.CmdLine
			if c.PrependShell {
				t.Error("the entrypoint needs a shell, which is not there")
			}
		case *instructions.CmdCommand:
			im.command = c.CmdLine
			if c.PrependShell {
				t.Error("the command needs a shell, which is not there")
			}
		case *instructions.HealthCheckCommand:
			im.healthcheck = c.Health.Test
		case *instructions.CopyCommand:
			if c.From != "build" || !slices.Equal(c.SourcePaths, []string{"/image/"}) || c.DestPath != "/" {
				t.Errorf("%s: the image is what the build lays in /image", c)
			}
		}
	}
	return im
}

func TestDockerfile(t *testing.T) {
	im := readDockerfile(t)
	if im.user != "65532:65532" || im.workdir != "/data" || im.env["HOME"] != "/data" || !slices.Equal(im.volumes, []string{"/data"}) {
		t.Errorf("%+v", im)
	}
	if version := strings.TrimPrefix(runtime.Version(), "go"); !strings.HasPrefix(im.build.BaseName, "golang:1.26.") {
		t.Errorf("built by %s; this is %s", im.build.BaseName, version)
	}
	if len(im.healthcheck) == 0 || im.healthcheck[0] != "CMD" {
		t.Fatalf("health check %q; a CMD-SHELL needs a shell, which is not there", im.healthcheck)
	}
	for what, line := range map[string][]string{"the command": append(im.entrypoint, im.command...), "the health check": im.healthcheck[1:]} {
		if line[0] != "askback" || im.env["PATH"] != "/usr/local/bin" {
			t.Errorf("%s: %q", what, line)
		}
		if out, errOut, code := command(t, "", append(line[1:], "--help")...); code != 0 || !strings.Contains(out, "Usage: askback "+line[1]) {
			t.Errorf("%s, %q, is no command of the program: exit code %d: %s%s", what, line, code, out, errOut)
		}
	}
	for _, c := range []string{"CGO_ENABLED=0", "-trimpath", "ca-certificates.crt", "chown " + im.user + " /image/data"} {
		if !strings.Contains(strings.Join(im.run, "\n"), c) {
			t.Errorf("the build has no %s", c)
		}
	}
}

// buildContext copies what docker build is sent.
func buildContext(t *testing.T, to string) {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(readText(t, "../../.dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		".env": true, ".env.local": true, "sub/.env": true, ".git/HEAD": true, "training/data/test.jsonl": true, "gate/gate_test.go": true,
		"go.mod": false, "go.sum": false, "cmd/askback/main.go": false, "cmd/askback/sample/about.md": false, "gate/lora/adapter/adapter_config.json": false,
	} {
		if got, err := ignored.MatchesOrParentMatches(path); err != nil || got != want {
			t.Errorf(".dockerignore: %s is left out: %v, want %v (%v)", path, got, want, err)
		}
	}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel("../..", path)
		if err != nil || name == "." {
			return err
		}
		out, err := ignored.MatchesOrParentMatches(filepath.ToSlash(name))
		switch {
		case err != nil:
			return err
		case out && d.IsDir():
			return fs.SkipDir
		case out || !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			write(t, filepath.Join(to, name), data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The image cannot be built here, but what it is made of can: the commands of the
// build run over what docker build is sent, and the program runs in a root folder
// that holds what the image does and no more, as the image's user.
func TestImage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a Linux image")
	}
	im := readDockerfile(t)
	dir := t.TempDir()
	source, root := filepath.Join(dir, "src"), filepath.Join(dir, "image")
	buildContext(t, source)
	for _, line := range im.run {
		line = strings.ReplaceAll(line, "/image", root)
		if os.Getuid() != 0 {
			line = strings.ReplaceAll(line, "chown", ": chown")
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION=v0.0.1-test", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	program := filepath.Join(root, "usr/local/bin/askback")
	static(t, program)
	var files []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(root, path); err == nil && d.Type().IsRegular() {
			files = append(files, name)
		}
		return err
	})
	if want := []string{"etc/ssl/certs/ca-certificates.crt", "usr/local/bin/askback"}; !slices.Equal(files, want) {
		t.Errorf("the image holds %q, want %q", files, want)
	}
	if os.Getuid() != 0 {
		t.Skip("only root may go into a root folder of its own; the rest was tested")
	}
	// The root is for its owner alone here, as in no image.
	for d := root; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inside := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/usr/local/bin/askback", args...)
		cmd.Dir = im.workdir
		for name, value := range im.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		confine(cmd, root, 65532)
		return cmd
	}
	out, err := inside("--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v0.0.1-test") {
		t.Fatalf("%v: %s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	im.env["ASKBACK_ADDR"] = "0.0.0.0:" + port
	if out, err := inside(im.command...).CombinedOutput(); err == nil || !strings.Contains(string(out), "askback keys create") {
		t.Errorf("without keys: %v: %s", err, out)
	}
	if out, err := inside("keys", "create", "test", "--keys=keys.json").CombinedOutput(); err != nil {
		t.Fatalf("making a key: %v: %s", err, out)
	}
	im.env["ASKBACK_KEYS"] = "keys.json"
	im.env["ASKBACK_STORE"] = "conversations.db" // beside what else is in /data
	im.env["ASKBACK_INDEX"], im.env["ASKBACK_SAMPLE"] = "index.db", "true"
	serve := inside(im.command...)
	var log bytes.Buffer
	serve.Stdout, serve.Stderr = &log, &log
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", &log)
		}
	}()
	// The health check, as Docker makes it, and until all is there.
	for _, extra := range [][]string{{"--wait=1m"}, {"--ready", "--wait=2m"}, nil} {
		if out, err := inside(append(im.healthcheck[2:], extra...)...).CombinedOutput(); err != nil {
			t.Fatalf("health check %q: %v: %s", extra, err, out)
		}
	}
	for _, name := range []string{"conversations.db", "index.db"} {
		if _, err := os.Stat(filepath.Join(root, "data", name)); err != nil {
			t.Error(err)
		}
	}
	_ = serve.Process.Signal(syscall.SIGTERM) // as docker stop does
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server does not end")
	}
}

// static makes sure that nothing is loaded with the program.
func static(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s wants a dynamic linker", program)
		}
	}
	if libraries, _ := f.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("%s wants %q", program, libraries)
	}
}
