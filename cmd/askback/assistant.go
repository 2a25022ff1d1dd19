package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/askback/askback/cmd/askback/sample"
	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/reply"
	"github.com/askback/askback/gate"
	"github.com/askback/askback/gate/lora"
	"github.com/askback/askback/pipeline"
	"github.com/askback/askback/retrieval"
	"github.com/askback/askback/retrieval/documents"
	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/minilm"
)

// sourceFlags choose what is answered from.
type sourceFlags struct {
	Docs    string `help:"Answer from the files of this folder: Markdown, text, HTML, PDF, CSV, JSON, JSONL, DOCX." type:"path" placeholder:"DIR"`
	Index   string `help:"Keep the index of --docs in this file and bring it up to date by content; without --docs, answer from this index as askback ingest left it." type:"path" placeholder:"FILE"`
	Rebuild bool   `help:"If the index file cannot be used, move it aside and build a new one."`
	Sample  bool   `help:"Load the sample knowledge base into an index file or a Qdrant collection that holds nothing else."`
	embeddingFlags
	chatFlags
}

// gateFlags choose the clarifier and when it asks.
type gateFlags struct {
	Adapter       string        `help:"Folder of a fine-tuned adapter to use instead of the embedded one." type:"path" placeholder:"DIR"`
	PreThreshold  float64       `help:"Score, 0 to 1, from which gate 1 asks. Default: calibrated." placeholder:"SCORE"`
	PostThreshold float64       `help:"Score, 0 to 1, from which gate 2 asks. Default: calibrated." placeholder:"SCORE"`
	MaxAsks       int           `help:"Clarifications in a row, both gates together." default:"2"`
	GateTimeout   time.Duration `help:"Time for each gate, beside that of the clarifier model; after it the turn goes on without asking." default:"5s"`
	Expire        age           `help:"How long a clarification waits for its reply, such as 12h or 30d. Default: as long as it takes." placeholder:"AGE"`
	clarifierFlags
	serverFlags
}

func newConversationID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// policy is the gates' policy as the flags say.
func (f gateFlags) policy() gate.Policy {
	p := gate.Policy{PreThreshold: f.PreThreshold, PostThreshold: f.PostThreshold, MaxInARow: f.MaxAsks, TimeLimit: f.GateTimeout, Expire: time.Duration(f.Expire)}
	if f.MaxAsks == 0 {
		p.MaxInARow = -1
	}
	if f.ClarifierModel != "" {
		p.TimeLimit += f.ClarifierTimeout
	}
	return p
}

// maxThreshold is above every score; more than it is a slip, such as 70 for .70.
const maxThreshold = 2

// clarifier loads the embedded clarifier with the adapter that the flags name.
func (f gateFlags) clarifier() (*lora.Clarifier, error) {
	for name, v := range map[string]float64{"--pre-threshold": f.PreThreshold, "--post-threshold": f.PostThreshold} {
		if !(v >= 0 && v <= maxThreshold) {
			return nil, usagef("%s is %v; a score is between 0 and 1, and a threshold above 1 switches the gate off", name, v)
		}
	}
	if f.MaxAsks < 0 {
		return nil, usagef("--max-asks is %d; 0 is none", f.MaxAsks)
	}
	if f.Adapter == "" {
		return lora.New(nil)
	}
	if info, err := os.Stat(f.Adapter); err != nil || !info.IsDir() {
		return nil, usagef("--adapter: %s is not a folder that can be read", f.Adapter)
	}
	clarifier, err := lora.New(os.DirFS(f.Adapter))
	if err != nil {
		return nil, usagef("--adapter: %s: %w", f.Adapter, err)
	}
	return clarifier, nil
}

// assistant is everything a conversation needs. It is opened step by step, so that
// a step that fails for the time being can be tried again.
type assistant struct {
	setup
	errOut io.Writer // for progress and reports

	pipeline      *pipeline.Pipeline
	parts         pipeline.Parts
	own           *minilm.Embedder // the embedded one
	embedder      textEmbedder     // of the knowledge
	knowledge     knowledge
	store         conversation.Store
	sources       string   // what is loaded, in a line
	documents     []string // their names
	clarifierName string
	served        []string // what a model server does, in a line each
	try           []suggestion
}

// setup says how an assistant is to be.
type setup struct {
	source sourceFlags
	gates  gateFlags
	kept   storeFlags
	// wait is how long a server that does not answer yet is waited for; negative
	// is not at all.
	wait time.Duration
	// serving says that it is for a server: documents can come later, into an
	// index file that need not be there yet, and a service that is away is an error
	// soon, since the user waits.
	serving bool
	// reading, if set, is told how many of the files of a folder are read.
	reading func(done, total int)
}

// suggestion is a question to try on the first screen.
type suggestion struct{ text, shows string }

// close releases what is open, however far the opening came.
func (a *assistant) close() {
	if a.knowledge != nil {
		_ = a.knowledge.Close()
	}
	if a.store != nil {
		_ = a.store.Close()
	}
}

// openAssistant opens all at once. Progress and reports go to errOut.
func openAssistant(ctx context.Context, errOut io.Writer, s setup) (opened *assistant, err error) {
	a, err := newAssistant(errOut, s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for _, step := range []func(context.Context) error{a.openStore, a.openEmbedder, a.openKnowledge} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return a, a.assemble()
}

// newAssistant makes what needs neither a server nor a file of the user's.
func newAssistant(errOut io.Writer, s setup) (*assistant, error) {
	if s.source.Rebuild && s.source.Docs == "" {
		return nil, usagef("--rebuild (ASKBACK_REBUILD) builds the index of --docs anew, and no folder is named: add --docs DIR, or fill the index with askback ingest DIR --index FILE --rebuild")
	}
	if store, err := filepath.Abs(kong.ExpandPath(s.kept.Store)); s.kept.Store != "" && err == nil && store == s.source.Index {
		return nil, usagef("--store and --index both name %s; conversations and passages are two databases: give each a file of its own", store)
	}
	screen, err := s.gates.clarifier()
	if err != nil {
		return nil, err
	}
	a := &assistant{setup: s, errOut: errOut, clarifierName: screen.Name(), served: served(s.source, s.gates)}
	if a.own, err = minilm.New(); err != nil {
		return nil, err
	}
	reader, err := reply.New(nil)
	if err != nil {
		return nil, err
	}
	a.parts = pipeline.Parts{Policy: s.gates.policy(), Matcher: a.own, Readers: []conversation.Reader{reader}}
	if a.parts.Clarifier, err = s.gates.cascade(screen); err != nil {
		return nil, err
	}
	return a, s.source.wire(&a.parts, s.gates.serverFlags, a.own)
}

// openStore opens where conversations are kept.
func (a *assistant) openStore(ctx context.Context) (err error) {
	a.store, err = a.kept.open(ctx)
	return err
}

// openEmbedder opens what passages and questions are embedded with.
func (a *assistant) openEmbedder(ctx context.Context) (err error) {
	a.embedder, err = a.source.embeddingFlags.open(ctx, a.gates.serverFlags, a.own)
	return err
}

// openKnowledge opens what is answered from.
func (a *assistant) openKnowledge(ctx context.Context) (err error) {
	defer func() {
		if err != nil && a.knowledge != nil {
			_ = a.knowledge.Close()
			a.knowledge = nil
		}
	}()
	if a.source.Docs != "" {
		return a.openFolder(ctx)
	}
	if ingested, err := a.openIngested(ctx); ingested || err != nil {
		return err
	}
	return a.openSample(ctx)
}

// assemble makes the pipeline of what is open.
func (a *assistant) assemble() (err error) {
	a.parts.Store, a.parts.Retriever = a.store, a.knowledge
	a.pipeline, err = pipeline.New(a.parts)
	return err
}

// openSample loads the sample knowledge base, whose vectors are built in.
func (a *assistant) openSample(ctx context.Context) error {
	vectors, err := sample.Vectors(a.embedder.Identity())
	if err != nil {
		return err
	}
	index, err := local.Open(ctx, local.Options{Embedder: a.embedder, Identity: a.embedder.Identity(), Vectors: vectors})
	if err != nil {
		return err
	}
	a.knowledge = index
	report, err := a.sync(ctx, io.Discard, sample.Documents)
	if err != nil {
		return err
	}
	a.sources = fmt.Sprintf("the sample knowledge base: %s (%s, %s); --docs DIR for your own",
		sample.About, counted(len(report.Added), "document"), counted(index.Len(), "passage"))
	return a.suggest()
}

// suggest takes the sample's questions for the first screen.
func (a *assistant) suggest() error {
	questions, err := sample.Questions()
	// What gate 1 asks about comes first: with a dialogue before it, it may be clear.
	for _, first := range []bool{true, false} {
		for _, q := range questions {
			if q.Try && first == (q.Gate == string(gate.Pre)) {
				a.try = append(a.try, suggestion{q.Question, q.Shows()})
			}
		}
	}
	return err
}

// ofFile is what is said of a file, on one line: a name with a line break or another
// control character is quoted.
func ofFile(name, what string) string {
	shown := fileName(name)
	return shown + ": " + strings.ReplaceAll(what, name, shown)
}

// fileName is a file's name as it is shown.
func fileName(name string) string {
	if printable(name) != name || strings.ContainsAny(name, "\n\t") {
		return strconv.Quote(name)
	}
	return name
}

// checkFolder says what is wrong with the folder of --docs.
func (s sourceFlags) checkFolder() error {
	if s.Docs == "" {
		return nil
	}
	folder, err := documents.OpenFolder(s.Docs)
	if err != nil {
		return usagef("--docs: %w", err)
	}
	return folder.Close()
}

// openFolder indexes a folder of files.
func (a *assistant) openFolder(ctx context.Context) error {
	s := a.source
	if addr := os.Getenv("QDRANT_ADDR"); addr != "" {
		return usagef("--docs answers from a folder in this process, but QDRANT_ADDR (%s) is set: fill the collection with askback ingest %s, and ask without --docs; or unset QDRANT_ADDR", addr, s.Docs)
	}
	folder, err := documents.OpenFolder(s.Docs)
	if err != nil {
		return usagef("--docs: %w", err)
	}
	defer folder.Close()
	fresh := isFresh(s.Index)
	index, err := openIndex(ctx, a.errOut, s.Index, s.Rebuild, a.embedder, a.embedder.Identity())
	if err != nil {
		return err
	}
	a.knowledge = index
	report, err := a.sync(ctx, a.errOut, folder)
	if err != nil {
		if errors.Is(err, documents.ErrNoDocuments) {
			if fresh {
				dropIndex(ctx, index, s.Index)
			}
			return usagef("--docs %s: %w", s.Docs, err)
		}
		return err
	}
	a.sources = fmt.Sprintf("%s: %s, %s", s.Docs, counted(len(a.documents), "document"), counted(index.Len(), "passage"))
	if s.Index != "" {
		a.sources += fmt.Sprintf(" (index: %d new, %d changed, %d unchanged, %d deleted)",
			len(report.Added), len(report.Changed), len(report.Unchanged), len(report.Deleted))
	}
	return nil
}

// sync reads fsys and brings the index up to date with it, with progress on a
// terminal; what could not be read is named on errOut.
func (a *assistant) sync(ctx context.Context, errOut io.Writer, fsys fs.FS) (retrieval.SyncReport, error) {
	bar := progress(errOut, -1, "reading")
	defer bar.Finish()
	var skipped []documents.Result
	inputs := inputs(ctx, fsys, a.embedder, func(r documents.Result) {
		bar.ChangeMax(r.Total)
		_ = bar.Set(r.Done)
		if a.reading != nil {
			a.reading(r.Done, r.Total)
		}
		if r.Skipped == "" {
			a.documents = append(a.documents, r.Path)
		}
		if r.Skipped != "" || len(r.Warnings) > 0 {
			skipped = append(skipped, r)
		}
	})
	report, err := retrieval.Sync(ctx, a.knowledge, inputs, retrieval.SyncOptions{})
	_ = bar.Finish()
	for _, r := range skipped {
		if r.Skipped != "" {
			fmt.Fprintln(errOut, "skipped "+ofFile(r.Path, r.Skipped))
		}
		for _, w := range r.Warnings {
			fmt.Fprintln(errOut, ofFile(r.Path, w))
		}
	}
	for _, s := range report.Skipped {
		fmt.Fprintln(errOut, "skipped "+ofFile(s.Document, s.Err.Error()))
	}
	return report, err
}

// inputs gives the readable documents of fsys.
func inputs(ctx context.Context, fsys fs.FS, embedder textEmbedder, report func(documents.Result)) iter.Seq2[retrieval.Input, error] {
	return documents.Inputs(ctx, fsys, documents.InputOptions{Options: reading(), Chunk: cutting(embedder), Report: report})
}

// reading is how files are read.
func reading() documents.Options {
	cache, err := os.UserCacheDir() // of the PDF reader's compiled code
	if err != nil {
		return documents.Options{}
	}
	return documents.Options{CacheDir: filepath.Join(cache, "askback")}
}

// cutting is how documents are cut: by the encoder's tokens.
func cutting(embedder textEmbedder) retrieval.ChunkOptions {
	return retrieval.ChunkOptions{Count: embedder.Count}
}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func dirOf(path string) string { return filepath.Dir(path) }

// served says what a model server does for the assistant.
func served(s sourceFlags, g gateFlags) (lines []string) {
	for _, m := range []struct{ does, name string }{
		{"writes the answers", s.ChatModel}, {"embeds", s.EmbeddingModel}, {"is asked where the clarifier is unsure", g.ClarifierModel},
	} {
		if m.name != "" {
			lines = append(lines, m.name+" "+m.does)
		}
	}
	return lines
}
