package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/ollama/ollama/api"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/internal/ollamatest"
	"github.com/askback/askback/internal/ollamatest/tinygguf"
	"github.com/askback/askback/internal/qdranttest"
	"github.com/askback/askback/server"
)

// door is an address at which a service is found once it is open; before that,
// nobody listens there.
type door struct {
	addr     string
	listener net.Listener
}

func newDoor(t *testing.T) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &door{addr: l.Addr().String()}
}

// open leads to a service from now on.
func (d *door) open(t *testing.T, network, address string) {
	t.Helper()
	var err error
	if d.listener, err = net.Listen("tcp", d.addr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.shut)
	go func() {
		for {
			outside, err := d.listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer outside.Close()
				inside, err := net.Dial(network, address)
				if err != nil {
					return
				}
				defer inside.Close()
				go func() {
					_, _ = io.Copy(inside, outside)
					_ = inside.Close()
				}()
				_, _ = io.Copy(outside, inside)
			}()
		}
	}()
}

func (d *door) shut() { _ = d.listener.Close() }

// container is a process started as the compose file says of a service, with
// addresses of this machine in place of its network and volumes.
type container struct {
	url  string
	args []string
	env  []string
	dir  string

	cmd *exec.Cmd
	log *bytes.Buffer
}

// newContainer takes the command of the Dockerfile and the environment of the
// service askback, and no other.
func newContainer(t *testing.T, p *types.Project, places ...string) *container {
	t.Helper()
	data := t.TempDir()
	address := newDoor(t).addr
	im := readDockerfile(t)
	env := im.env
	for name, value := range environment(t, p, "askback") {
		env[name] = value
	}
	here := strings.NewReplacer(append(places, "0.0.0.0:8080", address, "/data/", data+"/", "/data", data)...)
	c := &container{url: "http://" + address, args: im.command, dir: data}
	for name, value := range env {
		c.env = append(c.env, name+"="+here.Replace(value))
	}
	c.env = append(c.env, asProgram+"=1")
	t.Cleanup(func() {
		c.end(t)
		if t.Failed() {
			t.Logf("askback said:\n%s", c.log)
		}
	})
	return c
}

func (c *container) start(t *testing.T) {
	t.Helper()
	c.cmd, c.log = exec.Command(os.Args[0], c.args...), new(bytes.Buffer)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.env, c.dir, c.log, c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// end stops it as docker stop does: within ten seconds, or it is killed.
func (c *container) end(t *testing.T) {
	t.Helper()
	if c.cmd == nil {
		return
	}
	process := c.cmd.Process
	_ = process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(10*time.Second, func() { _ = process.Kill() })
	err := c.cmd.Wait()
	if !late.Stop() {
		t.Error("askback had to be killed")
	} else if err != nil {
		t.Errorf("askback ended with %v", err)
	}
	c.cmd = nil
}

// healthcheck runs the image's, with further arguments.
func (c *container) healthcheck(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(readDockerfile(t).healthcheck[2:], args...)...)
	cmd.Env, cmd.Dir = c.env, c.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// call makes a request, wants that status, 0 for any, and reads the JSON that comes
// into out.
func (c *container) call(t *testing.T, method, path string, body any, status int, out any) {
	t.Helper()
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, &in)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil || status != 0 && response.StatusCode != status {
		t.Fatalf("%s %s: %s %s %v, want %d", method, path, response.Status, said, err, status)
	}
	if err := json.Unmarshal(said, out); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, said)
	}
}

// down are the services that the server names as not there.
func (c *container) down(t *testing.T) (names []string) {
	t.Helper()
	var r server.Readiness
	c.call(t, "GET", "/readyz", nil, 0, &r)
	for _, s := range r.Services {
		if !s.OK {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// until waits until those services alone are down.
func (c *container) until(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(200 * time.Millisecond) {
		if got = c.down(t); slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("down are %q, want %q", got, want)
}

// The demo, as docker compose would run it: the processes of the compose file with
// its variables, in the worst order. askback comes first, PostgreSQL, Ollama, its
// model and Qdrant one after the other behind it. Then it asks back, answers with
// a citation, and after a restart the conversation is there.
func TestComposeDemo(t *testing.T) {
	t.Run("as it stands", func(t *testing.T) { demo(t, "", "", "") })
	t.Run("postgres", func(t *testing.T) {
		url := os.Getenv("ASKBACK_TEST_POSTGRES")
		if url == "" {
			t.Skip("no PostgreSQL: ./test starts one, or set ASKBACK_TEST_POSTGRES to the URL of a server")
		}
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		network, address := pgconn.NetworkAddress(config.Host, config.Port)
		demo(t, fmt.Sprintf("COMPOSE_PROFILES='postgres'\nPOSTGRES_PASSWORD='%s'\nASKBACK_STORE='postgres://%s@postgres/%s?sslmode=disable'\n",
			config.Password, config.User, config.Database), network, address)
	})
}

func demo(t *testing.T, dotenv, postgresNetwork, postgresAddress string) {
	engine := qdranttest.Start(t)
	ollama := ollamatest.Start(t)
	say := tinygguf.Scripted(tinygguf.Config{Arch: "granite", Context: 32768}, tinygguf.Say("ANSWER: ", "It takes 6 hours", " [1]", "."))
	model := ollama.Model(t, "demo", say)
	if err := ollama.API.Delete(t.Context(), &api.DeleteRequest{Model: model}); err != nil { // not pulled yet
		t.Fatal(err)
	}
	qdrantDoor, ollamaDoor, postgresDoor := newDoor(t), newDoor(t), newDoor(t)
	p := loadCompose(t, dotenv+"ASKBACK_CHAT_MODEL='"+model+"'\nASKBACK_GATE_TIMEOUT='"+slow+"'\nQDRANT_COLLECTION='demo'\n")
	places := []string{"qdrant:6334", qdrantDoor.addr, "http://ollama:11434", "http://" + ollamaDoor.addr, "@postgres/", "@" + postgresDoor.addr + "/"}
	c := newContainer(t, p, places...)
	id := fmt.Sprint("demo-", time.Now().UnixNano())
	turns := "/api/conversations/" + id + "/turns"

	c.start(t)
	if out, err := c.healthcheck(t, "--wait=2m"); err != nil {
		t.Fatalf("alive: %v: %s", err, out)
	}
	if out, err := c.healthcheck(t, "--ready"); err == nil || !strings.Contains(out, "503") || !strings.Contains(out, "Qdrant") {
		t.Errorf("ready: %v: %s", err, out)
	}
	if postgresAddress != "" {
		c.until(t, "Ollama", "PostgreSQL", "Qdrant")
		postgresDoor.open(t, postgresNetwork, postgresAddress)
	}
	c.until(t, "Ollama", "Qdrant")
	var problem server.Problem
	c.call(t, "POST", turns, server.TurnMessage{Text: "How long does charging take?"}, http.StatusServiceUnavailable, &problem)
	if problem.Service == "" || problem.Detail == "" {
		t.Errorf("%+v", problem)
	}
	var list []server.ConversationInfo
	c.call(t, "GET", "/api/conversations", nil, http.StatusOK, &list)

	// The step that gets the models fails while Ollama is not there, which is why it
	// is started again.
	if out, err := models(t, p, places); err == nil {
		t.Errorf("models, without Ollama: %s", out)
	}
	ollamaDoor.open(t, "tcp", strings.TrimPrefix(ollama.URL, "http://"))
	c.until(t, "Ollama", "Qdrant")
	if made := ollama.Model(t, "demo", say); made != model { // it is pulled
		t.Fatal(made)
	}
	if out, err := models(t, p, places); err != nil {
		t.Errorf("models: %v: %s", err, out)
	}
	c.until(t, "Qdrant")
	qdrantDoor.open(t, "tcp", engine.Addr)
	if out, err := c.healthcheck(t, "--ready", "--wait=3m"); err != nil {
		t.Fatalf("ready: %v: %s", err, out)
	}

	// The sample is loaded, and its questions are offered.
	var about server.About
	c.call(t, "GET", "/api/about", nil, http.StatusOK, &about)
	if len(about.Samples) == 0 || about.Models.Chat == nil || *about.Models.Chat != model {
		t.Errorf("%+v", about)
	}
	var asked, answered server.TurnResult
	c.call(t, "POST", turns, server.TurnMessage{Text: "How long does charging take?", Key: "first"}, http.StatusOK, &asked)
	if asked.Kind != "clarification" || len(asked.Options) < 2 {
		t.Fatalf("%+v", asked)
	}
	choice := asked.Options[slices.IndexFunc(asked.Options, func(o conversation.Option) bool { return strings.Contains(o.Text, "Cargo 2") })]
	c.call(t, "POST", turns, server.TurnMessage{Choice: choice.ID, Clarification: asked.Clarification, Key: "second"}, http.StatusOK, &answered)
	if answered.Kind != "answer" || answered.Text != "It takes 6 hours [1]." || len(answered.Citations) != 1 || answered.Citations[0].Quote == "" || !strings.Contains(answered.Question, "Cargo 2") {
		t.Fatalf("%+v", answered)
	}
	if !strings.Contains(answered.Citations[0].Title, "Charging time: Cargo 2") {
		t.Errorf("%+v", answered.Citations)
	}

	// What is kept outlives the container, and is not loaded twice.
	var before, after server.ConversationView
	var documents, still []server.Document
	c.call(t, "GET", "/api/conversations/"+id, nil, http.StatusOK, &before)
	c.call(t, "GET", "/api/documents", nil, http.StatusOK, &documents)
	c.end(t)
	c.start(t)
	if out, err := c.healthcheck(t, "--ready", "--wait=3m"); err != nil {
		t.Fatalf("ready again: %v: %s", err, out)
	}
	c.call(t, "GET", "/api/conversations/"+id, nil, http.StatusOK, &after)
	c.call(t, "GET", "/api/documents", nil, http.StatusOK, &still)
	was, _ := json.Marshal(before)
	is, _ := json.Marshal(after)
	if len(after.Turns) != 2 || after.Turns[1].Result == nil || after.Turns[1].Result.Text != answered.Text || !bytes.Equal(was, is) {
		t.Errorf("before: %s\nafter: %s", was, is)
	}
	if len(documents) == 0 || len(documents) != len(still) {
		t.Errorf("%d documents, after the restart %d", len(documents), len(still))
	}

	// A service that goes away is named, and what was said can still be read.
	qdrantDoor.shut()
	engine.Kill()
	c.until(t, "Qdrant")
	c.call(t, "GET", "/api/conversations/"+id, nil, http.StatusOK, &after)
}

// models runs the step that gets the models, with a real ollama.
func models(t *testing.T, p *types.Project, places []string) (string, error) {
	t.Helper()
	binary, err := ollamatest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", p.Services["models"].Entrypoint[1:]...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + filepath.Dir(binary)}
	for name, value := range environment(t, p, "models") {
		cmd.Env = append(cmd.Env, name+"="+strings.NewReplacer(places...).Replace(value))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
