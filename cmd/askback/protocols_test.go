package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/server/mcp"
)

// itself is this program with these arguments, in an empty folder.
func itself(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env, c.Dir = append(os.Environ(), asProgram+"=1", "ASKBACK_GATE_TIMEOUT="+slow), t.TempDir()
	return c
}

// askTool calls the tool ask.
func askTool(t *testing.T, c *sdk.ClientSession, arguments map[string]any) (r mcp.Result) {
	t.Helper()
	got, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: arguments})
	if err != nil || got.IsError {
		t.Fatalf("%v: %+v, %v", arguments, got, err)
	}
	data, _ := json.Marshal(got.StructuredContent)
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMCPOverStandardStreams starts the program as a client on the desktop does.
func TestMCPOverStandardStreams(t *testing.T) {
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: itself(t, "mcp")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := askTool(t, c, map[string]any{"question": "How long does charging the battery take?"})
	if asked.Kind != conversation.KindClarification || len(asked.Options) < 2 {
		t.Fatalf("%+v", asked)
	}
	answer := askTool(t, c, map[string]any{"question": "the Cargo 2", "conversation": asked.Conversation})
	if answer.Kind != conversation.KindAnswer || !strings.Contains(answer.Text, "6 hours") || len(answer.Citations) == 0 {
		t.Errorf("%+v", answer)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the program's end: %v", err)
	}
}

// TestMCPThatCannotOpen says on standard error why.
func TestMCPThatCannotOpen(t *testing.T) {
	p := itself(t, "mcp", "--docs", "not-there")
	in, err := p.StdinPipe() // open, as a client's is
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := p.CombinedOutput()
	if p.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "--docs") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestServeProtocols talks to askback serve as clients of OpenAI's API and of MCP do.
func TestServeProtocols(t *testing.T) {
	p := itself(t, "serve", "--addr", "127.0.0.1:0")
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url := regexp.MustCompile(`http://\S+`).FindString(line)
	if err != nil || url == "" {
		t.Fatalf("%q, %v", line, err)
	}
	chat := func(messages string) (string, int) {
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"askback","messages":[%s]}`, messages)))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		var c struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if json.Unmarshal(data, &c) != nil || len(c.Choices) != 1 {
			return string(data), resp.StatusCode
		}
		return c.Choices[0].Message.Content, resp.StatusCode
	}
	const question = `{"role":"user","content":"How long does charging the battery take?"}`
	asks, status := chat(question)
	for status == http.StatusServiceUnavailable { // it is starting
		asks, status = chat(question)
	}
	if !strings.Contains(asks, "1. Cargo 2") {
		t.Fatalf("%d %s", status, asks)
	}
	given, _ := json.Marshal(asks)
	if answer, _ := chat(question + `,{"role":"assistant","content":` + string(given) + `},{"role":"user","content":"the first"}`); !strings.Contains(answer, "6 hours") || !strings.Contains(answer, "Sources:") {
		t.Errorf("%s", answer)
	}

	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r := askTool(t, c, map[string]any{"question": "What does ERR-5199 mean?"}); r.Kind != conversation.KindNoAnswer {
		t.Errorf("%+v", r)
	}
}
