package main

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	compose "github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/distribution/reference"
	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"
)

const (
	composeFile = "../../docker-compose.yml"
	exampleFile = "../../.env.example"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// loadCompose loads the compose file as docker compose does, in a folder of its
// own with this .env ("" for none).
func loadCompose(t *testing.T, dotenv string, profiles ...string) *types.Project {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "docker-compose.yml"), []byte(readText(t, composeFile)))
	if dotenv != "" {
		write(t, filepath.Join(dir, ".env"), []byte(dotenv))
	}
	o, err := compose.NewProjectOptions([]string{filepath.Join(dir, "docker-compose.yml")},
		compose.WithWorkingDirectory(dir), compose.WithEnvFiles(), compose.WithDotEnv, compose.WithDefaultProfiles(profiles...))
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// environment is what a service's processes are started with.
func environment(t *testing.T, p *types.Project, service string) map[string]string {
	t.Helper()
	s, ok := p.Services[service]
	if !ok {
		t.Fatalf("no service %s is started", service)
	}
	env := map[string]string{}
	for name, value := range s.Environment {
		if value != nil {
			env[name] = *value
		}
	}
	return env
}

func TestComposeProfiles(t *testing.T) {
	for _, tc := range []struct {
		name     string
		dotenv   string
		profiles []string
		want     []string
	}{
		{"as it stands", "", nil, []string{"askback", "models", "ollama", "qdrant"}},
		{"a GPU", "", []string{"gpu"}, []string{"askback", "models", "ollama", "ollama-gpu", "qdrant"}},
		{"PostgreSQL", "", []string{"postgres"}, []string{"askback", "models", "ollama", "postgres", "qdrant"}},
		{"both, from .env", "COMPOSE_PROFILES='postgres,gpu'\n", nil, []string{"askback", "models", "ollama", "ollama-gpu", "postgres", "qdrant"}},
	} {
		p := loadCompose(t, tc.dotenv, tc.profiles...)
		if got := slices.Sorted(maps.Keys(p.Services)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// What the file says of each service, with every profile on.
func TestComposeServices(t *testing.T) {
	p := loadCompose(t, "", "gpu", "postgres")
	used := map[string]bool{}
	for name, s := range p.Services {
		ref, err := reference.ParseNormalizedNamed(s.Image)
		if err != nil {
			t.Errorf("%s: image %q: %v", name, s.Image, err)
			continue
		}
		if tagged, ok := ref.(reference.Tagged); !ok || tagged.Tag() == "latest" || s.Build == nil && !regexp.MustCompile(`^v?\d+\.\d+`).MatchString(tagged.Tag()) {
			t.Errorf("%s: image %q is not pinned to a version", name, s.Image)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published beyond this machine", name, port.Published)
			}
			if name != "askback" {
				t.Errorf("%s is published; only askback needs to be", name)
			}
		}
		// Qdrant's image has no wget or curl, Ollama's no curl: nothing in them asks
		// whether they are ready, and nothing waits for an answer.
		if s.HealthCheck != nil {
			t.Errorf("%s: a probe in the image: is its program there?", name)
		}
		for on, d := range s.DependsOn {
			if d.Condition != types.ServiceConditionStarted {
				t.Errorf("%s waits until %s is %s; askback waits by itself", name, on, d.Condition)
			}
			if profiles := p.Services[on].Profiles; d.Required == (len(profiles) > 0) {
				t.Errorf("%s: depends on %s, of the profiles %q: required is %v", name, on, profiles, d.Required)
			}
		}
		if name != "models" && s.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart is %q", name, s.Restart)
		}
		for _, v := range s.Volumes {
			used[v.Source] = true
			if v.Type != types.VolumeTypeVolume {
				t.Errorf("%s: %s is a %s, which need not belong to the user inside", name, v.Target, v.Type)
			}
		}
		// A secret is the user's own or none.
		for variable, value := range environment(t, p, name) {
			if regexp.MustCompile(`PASSWORD|_KEY$|TOKEN|SECRET`).MatchString(variable) && variable != "QDRANT_PLAINTEXT_KEY" && value != "" {
				t.Errorf("%s: %s has a value that everybody knows", name, variable)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(p.Volumes)), slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
		t.Errorf("volumes %q, used %q", got, want)
	}
	// Where each image keeps its data. All but askback's begin as root, and hand the
	// folder on themselves.
	for service, folder := range map[string]string{
		"askback": "/data", "qdrant": "/qdrant/storage", "ollama": "/root/.ollama", "ollama-gpu": "/root/.ollama", "postgres": "/var/lib/postgresql/data",
	} {
		if v := p.Services[service].Volumes; len(v) != 1 || v[0].Target != folder {
			t.Errorf("%s: %+v, want one volume at %s", service, v, folder)
		}
		if p.Services[service].User != "" {
			t.Errorf("%s: user %q, to whom a new volume does not belong", service, p.Services[service].User)
		}
	}
	if env := environment(t, p, "qdrant"); slices.Contains(slices.Collect(maps.Keys(env)), "QDRANT__SERVICE__API_KEY") {
		t.Error("qdrant: an API key that is empty: it would be a key")
	}
	gpu := p.Services["ollama-gpu"].Deploy.Resources.Reservations.Devices
	if len(gpu) != 1 || gpu[0].Driver != "nvidia" || p.Services["ollama"].Deploy != nil {
		t.Errorf("ollama-gpu: %+v", gpu)
	}
	// The versions that the tests know.
	module := regexp.MustCompile(`github\.com/ollama/ollama v(\S+)`).FindStringSubmatch(readText(t, "../../go.mod"))
	if got := p.Services["ollama"].Image; module == nil || got != "ollama/ollama:"+module[1] {
		t.Errorf("ollama: image %s; the tests run %q", got, module)
	}
	if p.Services["models"].Image != p.Services["ollama"].Image || p.Services["ollama-gpu"].Image != p.Services["ollama"].Image {
		t.Error("several versions of Ollama")
	}
}

// askback is started with settings that it knows.
func TestComposeSettings(t *testing.T) {
	env := environment(t, loadCompose(t, ""), "askback")
	for name := range env {
		if !slices.Contains(known(t), name) {
			t.Errorf("askback does not know %s", name)
		}
	}
	want := map[string]string{
		"ASKBACK_ADDR": "0.0.0.0:8080", "ASKBACK_OPEN": "true", "ASKBACK_STORE": "/data/conversations.db", "ASKBACK_OLLAMA_HOST": "http://ollama:11434",
		"QDRANT_ADDR": "qdrant:6334", "QDRANT_API_KEY": "", "ASKBACK_DOCS": "", "ASKBACK_SAMPLE": "true",
	}
	for name, value := range want {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
	// What .env says is passed on, but for what is another thing in here.
	dotenv := "ASKBACK_POST_THRESHOLD='0.7'\nASKBACK_CHAT_MODEL=''\nASKBACK_DOCS='docs'\nQDRANT_ADDR='localhost:6334'\nOLLAMA_HOST='0.0.0.0'\nHTTP_PORT='9090'\nQDRANT__SERVICE__API_KEY='blue$7Kite#9'\n"
	p := loadCompose(t, dotenv)
	env = environment(t, p, "askback")
	want = map[string]string{
		"ASKBACK_POST_THRESHOLD": "0.7", "ASKBACK_CHAT_MODEL": "", "ASKBACK_DOCS": "", "QDRANT_ADDR": "qdrant:6334",
		"ASKBACK_OLLAMA_HOST": "http://ollama:11434", "QDRANT_API_KEY": "blue$7Kite#9",
	}
	for name, value := range want {
		if got, set := env[name]; got != value || !set {
			t.Errorf("with .env: %s is %q, want %q", name, got, value)
		}
	}
	if got := environment(t, p, "qdrant")["QDRANT__SERVICE__API_KEY"]; got != "blue$7Kite#9" {
		t.Errorf("qdrant's key is %q", got)
	}
	if port := p.Services["askback"].Ports[0]; port.Published != "9090" || port.Target != 8080 || port.HostIP != "127.0.0.1" {
		t.Errorf("%+v", port)
	}
}

// A secret in single quotes is the same for the database, for compose and for the
// program, whatever it is made of.
func TestComposeSecrets(t *testing.T) {
	for _, secret := range []string{`blue$7Kite#9`, `a=b c # d`, `say "hi"`, `back\slash $HOME ${HOME}`, ` spaces `, `@host/db?x=1&y:%20`, `$$two`} {
		for _, end := range []string{"\n", "\r\n"} {
			line := "POSTGRES_PASSWORD='" + secret + "'" + end
			p := loadCompose(t, line+"COMPOSE_PROFILES='postgres'"+end+"ASKBACK_STORE='postgres://askback@postgres/askback'"+end)
			for service, variable := range map[string]string{"postgres": "POSTGRES_PASSWORD", "askback": "PGPASSWORD"} {
				if got := environment(t, p, service)[variable]; got != secret {
					t.Errorf("%q: %s reads %q", secret, service, got)
				}
			}
			// What the driver makes of both.
			env := environment(t, p, "askback")
			t.Setenv("PGPASSWORD", env["PGPASSWORD"])
			config, err := pgx.ParseConfig(env["ASKBACK_STORE"])
			if err != nil || config.Password != secret || config.Host != "postgres" || config.Database != "askback" || config.User != "askback" {
				t.Errorf("%q: %+v, %v", secret, config, err)
			}
			// The program, outside.
			file := filepath.Join(t.TempDir(), ".env")
			write(t, file, []byte(line))
			t.Setenv("POSTGRES_PASSWORD", "")
			os.Unsetenv("POSTGRES_PASSWORD")
			if _, err := loadSettings(file); err != nil || os.Getenv("POSTGRES_PASSWORD") != secret {
				t.Errorf("%q: the program reads %q, %v", secret, os.Getenv("POSTGRES_PASSWORD"), err)
			}
		}
	}
}

// composeVariables are those that the compose file takes from .env.
func composeVariables(t *testing.T) []string {
	t.Helper()
	var file map[string]any
	text := readText(t, composeFile)
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	names := slices.Collect(maps.Keys(template.ExtractVariables(file, template.DefaultPattern)))
	for _, service := range file["services"].(map[string]any) {
		env, _ := service.(map[string]any)["environment"].(map[string]any)
		for name, value := range env {
			if value == nil { // taken as it is
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// .env.example has each variable that the program or the compose file reads, once,
// and no other; a flag's default is the value shown.
func TestEnvExample(t *testing.T) {
	line := regexp.MustCompile(`^#([A-Z][A-Z0-9_]*)='([^']*)'$`)
	shown := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(readText(t, exampleFile)))
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if m := line.FindStringSubmatch(text); m != nil {
			if _, twice := shown[m[1]]; twice {
				t.Errorf("line %d: %s is there twice", n, m[1])
			}
			shown[m[1]] = m[2]
			continue
		}
		if text != "" && text != "#" && !strings.HasPrefix(text, "# ") {
			t.Errorf("line %d is neither text nor #NAME='value': %s", n, text)
		}
		if len(text) > 88 {
			t.Errorf("line %d is %d characters long", n, len(text))
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	fromCompose := append(composeVariables(t), "COMPOSE_PROFILES") // which docker compose itself reads
	if len(fromCompose) < 8 {
		t.Errorf("the compose file reads only %q", fromCompose)
	}
	for _, name := range slices.Concat(known(t), fromCompose) {
		if _, ok := shown[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for name := range shown {
		if !slices.Contains(known(t), name) && !slices.Contains(fromCompose, name) {
			t.Errorf("%s is not read by anything", name)
		}
	}
	var c cli
	k, err := kong.New(&c, kong.DefaultEnvars("ASKBACK"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	_ = kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				if got := shown[name]; flag.Default != "" && got != flag.Default || flag.IsBool() && got != "false" {
					t.Errorf("%s shows %q; the default is %q", name, got, flag.Default)
				}
			}
		}
		return next(nil)
	})
	// With every # taken away it is a .env that doctor has nothing against.
	all := regexp.MustCompile(`(?m)^#([A-Z])`).ReplaceAllString(readText(t, exampleFile), "$1")
	if p := envPitfalls(all); len(p) > 0 {
		t.Errorf("%+v", p)
	}
	p := loadCompose(t, all)
	for name, value := range shown {
		fixed := p.Services["askback"].Environment[name]
		if fixed == nil || !slices.Contains(fromCompose, name) && regexp.MustCompile(`(?m)^      `+name+`:`).MatchString(readText(t, composeFile)) {
			continue // of compose alone, or another thing in there
		}
		if *fixed != value {
			t.Errorf("%s is %q in the container, not %q", name, *fixed, value)
		}
	}
}

// The step that gets the models asks for those that are not there yet, and only
// for those that are Ollama's.
func TestComposeModels(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no POSIX shell")
	}
	bin := t.TempDir()
	// An ollama that has only granite4:micro, and cannot pull "missing".
	write(t, filepath.Join(bin, "ollama"), []byte("#!"+shell+`
echo "$@" >>"$CALLS"
case "$*" in
"show granite4:micro") echo shown ;;
show*) echo 'model not found' >&2; exit 1 ;;
"pull missing") echo 'pull model manifest: file does not exist' >&2; exit 1 ;;
esac
`))
	if err := os.Chmod(filepath.Join(bin, "ollama"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, dotenv string
		calls        []string
		fails        bool
	}{
		{name: "as it stands", calls: []string{"show qwen2.5:1.5b", "pull qwen2.5:1.5b"}},
		{name: "none", dotenv: "ASKBACK_CHAT_MODEL=''\n"},
		{name: "there already", dotenv: "ASKBACK_CHAT_MODEL='granite4:micro'\n", calls: []string{"show granite4:micro"}},
		{name: "three", dotenv: "ASKBACK_CHAT_MODEL='openai:gpt-5'\nASKBACK_EMBEDDING_MODEL='nomic-embed-text'\nASKBACK_CLARIFIER_MODEL='prompted:granite4:micro'\n",
			calls: []string{"show nomic-embed-text", "pull nomic-embed-text", "show granite4:micro"}},
		{name: "a judge elsewhere", dotenv: "ASKBACK_CHAT_MODEL=''\nASKBACK_CLARIFIER_MODEL='prompted:openai:gpt-5'\n"},
		{name: "one that there is none of", dotenv: "ASKBACK_CHAT_MODEL='missing'\n", calls: []string{"show missing", "pull missing"}, fails: true},
	} {
		p := loadCompose(t, tc.dotenv)
		step := p.Services["models"]
		calls := filepath.Join(t.TempDir(), "calls")
		if step.Entrypoint[0] != "/bin/sh" {
			t.Fatalf("%q", step.Entrypoint)
		}
		cmd := exec.Command(shell, step.Entrypoint[1:]...)
		cmd.Env = []string{"PATH=" + bin, "CALLS=" + calls}
		for name, value := range environment(t, p, "models") {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		said, _ := os.ReadFile(calls)
		if got := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(said)), " ", "_")); (err != nil) != tc.fails || strings.ReplaceAll(strings.Join(got, ","), "_", " ") != strings.Join(tc.calls, ",") {
			t.Errorf("%s: %q, want %q; %v\n%s", tc.name, got, tc.calls, err, out)
		}
	}
}
