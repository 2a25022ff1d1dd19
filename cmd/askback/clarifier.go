package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/hub"
	"github.com/askback/askback/internal/ollama"
)

// clarifierCommand holds what is done to clarifier models.
type clarifierCommand struct {
	Install clarifierInstall `cmd:"" help:"Bring the published fine-tuned clarifier, a LoRA for Granite 4 Micro, to an Ollama server; or one of your own of the same kind."`
}

// clarifierInstall brings an adapter to a server.
type clarifierInstall struct {
	From     string        `help:"Folder with adapter_config.json and adapter_model.safetensors; or the address of a hub or of a repository there." placeholder:"DIR|URL" env:"-"`
	Repo     string        `help:"Repository on the hub." default:"ibm-granite/granitelib-rag-r1.0" env:"-"`
	Revision string        `help:"Branch, tag or commit of it." default:"main" env:"-"`
	Folder   string        `help:"Folder of the adapter in it." default:"query_clarification/granite-4.0-micro/lora" env:"-"`
	Base     string        `help:"Model on the server that the adapter goes on (granite4:micro); or weights to merge it into: a GGUF file (f16, q8_0, f32), a folder of safetensors, or, with --merge, a repository on the hub." placeholder:"MODEL|PATH" env:"-"`
	Merge    bool          `help:"Merge the adapter into the base's weights, for servers that take no adapters. Without --base the weights come from the hub." env:"-"`
	Type     string        `help:"How merged weights are stored: q8_0, f16 or f32." default:"q8_0" enum:"q8_0,f16,f32" env:"-"`
	Name     string        `help:"Name of the model on the server." default:"askback-clarifier" env:"-"`
	Out      string        `help:"Write the adapter, or the merged model, as a GGUF file and leave the server's models alone." placeholder:"FILE" env:"-"`
	Force    bool          `help:"Keep the model even if it fails the built-in cases." env:"-"`
	Timeout  time.Duration `help:"Time for each of the built-in cases." default:"5m" env:"-"`
	HubURL   string        `name:"hub" help:"Hub to fetch from." default:"https://huggingface.co" env:"HF_ENDPOINT"`
	HubToken string        `help:"Token for the hub, for repositories that are not public." env:"HF_TOKEN" placeholder:"TOKEN"`
	Cache    string        `help:"Folder for what is fetched. Default: in the user's cache." placeholder:"DIR" env:"-"`
	serverFlags
}

// defaultBase is the base of the published adapter, as Ollama names it.
const defaultBase = "granite4:micro"

// Run fetches, converts, creates and verifies.
func (c *clarifierInstall) Run(ctx context.Context, io streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := c.settle(); err != nil {
		return err
	}
	in := &installation{clarifierInstall: c, out: io.out, log: io.err}
	dir, err := in.adapterFolder(ctx)
	if err != nil {
		return err
	}
	if in.adapter, err = gguf.OpenAdapter(dir); err != nil {
		return err
	}
	if in.instruction, err = readInstruction(filepath.Join(dir, "io.yaml")); err != nil {
		return err
	}
	in.say("adapter: %s, rank %d, changes %s", dir, in.adapter.Rank, strings.Join(in.adapter.Modules, ", "))
	if in.client, err = ollama.New(c.OllamaHost, nil); err != nil {
		return c.usage(err)
	}
	if c.Merge {
		return in.merged(ctx)
	}
	return in.adapted(ctx)
}

// settle reads what the flags mean together.
func (c *clarifierInstall) settle() error {
	if address := c.From; strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://") {
		u, err := url.Parse(address)
		if err != nil {
			return usagef("--from: %w", err)
		}
		// BASE, BASE/OWNER/NAME, or BASE/OWNER/NAME/tree/REVISION/FOLDER
		elements := strings.Split(strings.Trim(u.Path, "/"), "/")
		if len(elements) >= 2 {
			c.Repo = elements[0] + "/" + elements[1]
		}
		if len(elements) >= 4 && (elements[2] == "tree" || elements[2] == "resolve" || elements[2] == "blob") {
			c.Revision = elements[3]
			c.Folder = strings.Join(elements[4:], "/")
		} else if len(elements) != 2 && u.Path != "" && u.Path != "/" {
			return usagef("--from: %s is neither a hub nor a repository on one; write it as %s/%s", address, hub.DefaultBase, c.Repo)
		}
		c.HubURL, c.From = u.Scheme+"://"+u.Host, ""
	}
	if c.Base != "" {
		if _, err := os.Stat(c.Base); err == nil {
			c.Merge = true // weights are at hand
		} else if strings.HasSuffix(c.Base, ".gguf") {
			return usagef("--base: %w", err)
		}
	} else if !c.Merge {
		c.Base = defaultBase
	}
	return nil
}

// installation is one run of the command.
type installation struct {
	*clarifierInstall
	out, log    io.Writer
	client      *ollama.Client
	adapter     *gguf.Adapter
	instruction string // what the adapter wants said after the dialogue
}

func (in *installation) say(format string, a ...any) { fmt.Fprintf(in.log, format+"\n", a...) }

// fetch fetches a file of a repository into the cache and gives its place.
func (in *installation) fetch(ctx context.Context, repo, revision, path string) (string, error) {
	cache := in.Cache
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for what is fetched (name one with --cache): %w", err)
		}
		cache = filepath.Join(user, "askback", "hub")
	}
	to := filepath.Join(cache, filepath.FromSlash(repo), url.PathEscape(revision), filepath.FromSlash(path))
	bar := progress(in.log, -1, filepath.Base(path))
	defer func() { _ = bar.Finish() }()
	client := hub.Client{
		Base: in.HubURL, Token: in.HubToken,
		Progress: func(done, total int64) {
			if total > 0 {
				bar.ChangeMax64(total)
			}
			_ = bar.Set64(done)
		},
		Changed: func(what string, err error) { in.say("%s: %s failed, trying again: %v", path, what, err) },
	}
	err := client.Download(ctx, hub.File{Repository: repo, Revision: revision, Path: path}, to)
	return to, err
}

// adapterFolder gives the folder of the adapter on this machine.
func (in *installation) adapterFolder(ctx context.Context) (string, error) {
	if in.From != "" {
		for _, dir := range []string{in.From, filepath.Join(in.From, filepath.FromSlash(in.Folder))} {
			if _, err := os.Stat(filepath.Join(dir, gguf.AdapterConfig)); err == nil {
				return dir, nil
			}
		}
		return "", usagef("--from: there is no %s in %s nor in its %s", gguf.AdapterConfig, in.From, in.Folder)
	}
	in.say("fetching %s of %s at %s from %s", in.Folder, in.Repo, in.Revision, in.HubURL)
	dir := ""
	for _, name := range []string{gguf.AdapterConfig, gguf.AdapterWeights, "io.yaml"} {
		path := strings.TrimPrefix(in.Folder+"/"+name, "/")
		to, err := in.fetch(ctx, in.Repo, in.Revision, path)
		if errors.Is(err, hub.ErrMissing) && name == "io.yaml" {
			continue
		}
		if err != nil {
			return "", err
		}
		dir = filepath.Dir(to)
	}
	return dir, nil
}

// readInstruction reads the adapter's description of its input, if there is one:
// a message that follows the dialogue. What the gates could not keep is an error.
func readInstruction(name string) (string, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var d struct {
		Instruction string         `yaml:"instruction"`
		Sentences   map[string]any `yaml:"sentence_boundaries"`
		Documents   string         `yaml:"docs_as_message"`
	}
	if err := yaml.Unmarshal(data, &d); err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	text := strings.NewReplacer("{{", "", "}}", "").Replace(d.Instruction)
	if len(d.Sentences) > 0 || d.Documents != "" || strings.ContainsAny(text, "{}") {
		return "", fmt.Errorf("%s wants its input laid out in a way that the gates do not keep (sentence_boundaries, docs_as_message, or fields in its instruction); take the adapter query_clarification", name)
	}
	return strings.NewReplacer("{{", "{", "}}", "}").Replace(d.Instruction), nil
}

// weightsOf gives the base's weights to merge into.
func (in *installation) weightsOf(ctx context.Context, base string) (*gguf.Model, error) {
	info, err := os.Stat(base)
	switch {
	case err == nil && info.IsDir():
		return gguf.OpenHuggingFace(base)
	case err == nil:
		return gguf.OpenFile(base)
	}
	if base == "" {
		base = in.adapter.Base
	}
	if strings.Count(base, "/") != 1 || strings.ContainsAny(base, ": \\") {
		return nil, usagef("--merge needs the base's weights, and %q is neither a file, nor a folder, nor a repository on the hub; name one with --base, such as ibm-granite/granite-4.0-micro", base)
	}
	dir, err := in.fetchModel(ctx, base)
	if err != nil {
		return nil, err
	}
	return gguf.OpenHuggingFace(dir)
}

// fetchModel fetches a model's safetensors, settings and tokenizer.
func (in *installation) fetchModel(ctx context.Context, repo string) (string, error) {
	in.say("fetching %s from %s", repo, in.HubURL)
	const index, single = "model.safetensors.index.json", "model.safetensors"
	files := []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", index}
	optional := map[string]bool{"tokenizer_config.json": true, "chat_template.jinja": true, index: true}
	dir := ""
	for i := 0; i < len(files); i++ {
		to, err := in.fetch(ctx, repo, "main", files[i])
		missing := errors.Is(err, hub.ErrMissing) && optional[files[i]]
		if err != nil && !missing {
			return "", err
		}
		if files[i] == index && missing {
			files = append(files, single)
		} else if files[i] == index {
			parts, err := gguf.WeightFiles(to)
			if err != nil {
				return "", err
			}
			files = append(files, parts...)
		}
		dir = filepath.Dir(to)
	}
	return dir, nil
}

// merged merges the adapter into the base's weights and installs the whole.
func (in *installation) merged(ctx context.Context) error {
	base, err := in.weightsOf(ctx, in.Base)
	if err != nil {
		return err
	}
	defer base.Close()
	shape, err := base.Shape()
	if err != nil {
		return err
	}
	lora, err := in.adapter.For(shape)
	if err != nil {
		return err
	}
	model, err := gguf.Merge(base, lora)
	if err != nil {
		return err
	}
	kind, err := gguf.ParseType(in.Type)
	if err != nil {
		return usagef("--type: %w", err)
	}
	return in.written(ctx, model, kind, "merged", func(file, digest string) error {
		return in.install(ctx, modelParts{model: digest, file: file})
	})
}

// written writes a model to the file that was asked for, or to one that is
// handed on and taken away afterwards.
func (in *installation) written(ctx context.Context, m *gguf.Model, kind gguf.Type, what string, use func(file, digest string) error) error {
	keep := in.Out != ""
	dir := os.TempDir()
	if keep {
		dir = filepath.Dir(in.Out)
	}
	f, err := os.CreateTemp(dir, "askback-*.gguf")
	if err != nil {
		return fmt.Errorf("writing the %s model: %w", what, err)
	}
	defer os.Remove(f.Name())
	digest, err := writeModel(ctx, f, m, kind, in.log)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing the %s model: %w", what, err)
	}
	if !keep {
		return use(f.Name(), digest)
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), in.Out); err != nil {
		return err
	}
	fmt.Fprintf(in.out, "%s: %s, %s\n", in.Out, what, kind)
	return nil
}

// adapted puts the adapter on a model of the server.
func (in *installation) adapted(ctx context.Context) error {
	shape, err := in.serverShape(ctx)
	if err != nil {
		return err
	}
	lora, err := in.adapter.For(shape)
	if err != nil {
		return err
	}
	return in.written(ctx, lora.Model(), gguf.F32, "adapter", func(file, digest string) error {
		return in.install(ctx, modelParts{base: in.Base, adapter: digest, file: file})
	})
}
