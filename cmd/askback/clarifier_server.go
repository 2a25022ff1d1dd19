package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	ollamagate "github.com/askback/askback/gate/ollama"
	"github.com/askback/askback/internal/gguf"
	"github.com/askback/askback/internal/ollama"
)

// writeModel writes a model to a file and gives the digest by which a server
// knows it.
func writeModel(ctx context.Context, f *os.File, m *gguf.Model, kind gguf.Type, log io.Writer) (digest string, err error) {
	h := sha256.New()
	bar := progress(log, -1, "converting")
	defer func() { _ = bar.Finish() }()
	err = m.Write(ctx, io.MultiWriter(f, h), gguf.Options{Type: kind, Progress: func(done, total int64) {
		bar.ChangeMax64(total)
		_ = bar.Set64(done)
	}})
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), err
}

// serverShape asks the server for the shape of the base.
func (in *installation) serverShape(ctx context.Context) (gguf.Shape, error) {
	if _, err := in.client.Model(ctx, in.Base); err != nil {
		return gguf.Shape{}, err // it says what to do
	}
	r, err := in.client.API().Show(ctx, &api.ShowRequest{Model: in.Base})
	if err != nil {
		return gguf.Shape{}, fmt.Errorf("asking for the base model %s: %w", in.Base, err)
	}
	s, err := gguf.NewShape(func(key string) any { return r.ModelInfo[key] })
	if err != nil {
		return s, fmt.Errorf("the base model %s: %w", in.Base, err)
	}
	if r.Renderer != "" {
		in.say("note: the server lays out the chats of %s itself (%s), whatever the template says", in.Base, r.Renderer)
	}
	return s, nil
}

// modelParts are what a model is created from: a whole model's file, or a base
// on the server with an adapter's.
type modelParts struct {
	model         string // digest
	base, adapter string // a name, and a digest
	file          string // what is sent
}

// install creates the model under a name of its own, verifies it, and only then
// gives it the name that was asked for.
func (in *installation) install(ctx context.Context, p modelParts) error {
	client := in.client.API()
	trial := candidate(in.Name)
	if err := in.create(ctx, trial, p); err != nil {
		return in.orMerge(p, fmt.Errorf("creating %s on the server: %w", in.Name, err))
	}
	// Taken away also when the run was stopped.
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := client.Delete(clean, &api.DeleteRequest{Model: trial}); err != nil {
			in.say("taking away %s: %v", trial, err)
		}
	}()
	clarifier, err := ollamagate.New(ollamagate.Options{Host: in.OllamaHost, Model: trial, KeepAlive: in.KeepAlive})
	if err != nil {
		return in.usage(err)
	}
	v, err := verify(ctx, clarifier, in.Timeout, in.log)
	if err != nil {
		return in.orMerge(p, fmt.Errorf("trying %s: %w", in.Name, err))
	}
	v.print(in.out)
	if why := v.objection(); why != "" {
		if !in.Force {
			return fmt.Errorf("%s is NOT installed: %s; check that the adapter belongs to this base, or keep it all the same with --force", in.Name, why)
		}
		in.say("warning: %s; kept all the same", why)
	}
	if err := client.Copy(ctx, &api.CopyRequest{Source: trial, Destination: in.Name}); err != nil {
		return fmt.Errorf("naming the model %s: %w", in.Name, err)
	}
	in.client.Forget(in.Name)
	fmt.Fprintf(in.out, "%s is installed at %s. Use it with --clarifier-model %s, or ASKBACK_CLARIFIER_MODEL=%s\n", in.Name, in.client.Host(), in.Name, in.Name)
	return nil
}

// candidate is the name under which a model is tried.
func candidate(name string) string {
	if model, tag, ok := strings.Cut(name, ":"); ok {
		return model + ":" + tag + "-candidate"
	}
	return name + ":candidate"
}

// orMerge offers the merged form when a server does not take an adapter.
func (in *installation) orMerge(p modelParts, err error) error {
	var status api.StatusError
	if p.adapter == "" || errors.Is(err, context.Canceled) || errors.Is(err, ollama.ErrUnreachable) || errors.As(err, &status) && status.StatusCode == 404 {
		return err
	}
	return fmt.Errorf("%w\nif this server does not take adapters, merge it into the base's weights: askback clarifier install --merge --base FILE.gguf (f16 or q8_0), a folder of safetensors, or %s from the hub", err, in.adapter.Base)
}

// create sends what the server does not have and makes a model of it.
func (in *installation) create(ctx context.Context, name string, p modelParts) error {
	client := in.client.API()
	r := &api.CreateRequest{
		Model: name, Template: granite(in.instruction),
		// A penalty for repetition, which servers set by default, would bend what
		// the adapter has learnt to say.
		Parameters: map[string]any{"temperature": 0, "num_predict": 1024, "repeat_penalty": 1, "stop": []string{"<|end_of_text|>"}},
	}
	digest := p.model
	if p.adapter != "" {
		digest = p.adapter
		r.From, r.Adapters = p.base, map[string]string{"adapter.gguf": digest}
	} else {
		r.Files = map[string]string{"model.gguf": digest}
	}
	f, err := os.Open(p.file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	bar := progress(in.log, int(info.Size()), "sending")
	err = client.CreateBlob(ctx, digest, io.TeeReader(f, bar))
	_ = bar.Finish()
	if err != nil {
		return fmt.Errorf("sending %d bytes: %w", info.Size(), err)
	}
	last := ""
	return client.Create(ctx, r, func(p api.ProgressResponse) error {
		if p.Status != last {
			last = p.Status
			in.say("server: %s", last)
		}
		return nil
	})
}

// graniteTemplate is the chat layout of Granite 4, in the server's language:
// documents, which come as messages of the role "document 1" and so on, stand in
// the system message. The gates write them there themselves.
const graniteTemplate = `{{- $documents := false }}
{{- range .Messages }}{{ if and (ge (len .Role) 9) (eq (slice .Role 0 9) "document ") }}{{ $documents = true }}{{ end }}{{ end -}}
<|start_of_role|>system<|end_of_role|>{{ .System }}{{ if and .System $documents }}

{{ end }}{{ if $documents }}You are a helpful assistant with access to the following documents. You may use one or more documents to assist with the user query.

You are given a list of documents within <documents></documents> XML tags:
<documents>{{ range .Messages }}{{ if and (ge (len .Role) 9) (eq (slice .Role 0 9) "document ") }}
{"text": {{ json .Content }}, "doc_id": {{ json (slice .Role 9) }}}{{ end }}{{ end }}
</documents>

Write the response to the user's input by strictly aligning with the facts in the provided documents. If the information needed to answer the question is not available in the documents, inform the user that the question cannot be answered based on the available data.{{ else if not .System }}You are a helpful assistant. Please ensure responses are professional, accurate, and safe.{{ end }}<|end_of_text|>
{{ range .Messages }}{{ if and (ne .Role "system") (not (and (ge (len .Role) 9) (eq (slice .Role 0 9) "document "))) }}<|start_of_role|>{{ .Role }}<|end_of_role|>{{ .Content }}<|end_of_text|>
{{ end }}{{ end }}INSTRUCTION<|start_of_role|>assistant<|end_of_role|>`

// granite gives the template; an adapter's instruction is the user's last
// message.
func granite(instruction string) string {
	if instruction != "" {
		instruction = "<|start_of_role|>user<|end_of_role|>{{ " + fmt.Sprintf("%q", instruction) + " }}<|end_of_text|>\n"
	}
	return strings.Replace(graniteTemplate, "INSTRUCTION", instruction, 1)
}
