package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/askback/askback/retrieval"
	"golang.org/x/text/encoding/charmap"
)

// DefaultMaxFileSize is the size in bytes of the largest file that is read
// when Options names none.
const DefaultMaxFileSize = 64 << 20

var (
	// ErrFormat is wrapped by the error for a file of a kind that is not read.
	ErrFormat = errors.New("not a format that is read")
	// ErrTooLarge is wrapped by the error for a file that is larger than the
	// limit, as it is or unpacked.
	ErrTooLarge = errors.New("larger than the limit")
)

// ErrNoDocuments is wrapped by the error for a folder without a file that
// could be read. The error names what was found.
var ErrNoDocuments = errors.New("no readable file")

// Options says what is read. The zero value works.
type Options struct {
	// MaxFileSize is the size in bytes of the largest file that is read,
	// unpacked where it is packed; 0 means DefaultMaxFileSize.
	MaxFileSize int64
	// CacheDir is a folder in which the compiled reader of PDF files is kept
	// from one run to the next; without it, each Read that meets a PDF file
	// takes seconds to compile it. It is made if it is not there.
	CacheDir string
}

// Result is what became of one file.
type Result struct {
	Path     string             // of the file in the folder, valid UTF-8, slash-separated
	Document retrieval.Document // empty if the file was skipped
	Skipped  string             // why the file gives no document, such as "empty"; "" if it gives one
	// Unreadable says that the file, or the folder of that path, is there and the
	// file system refused to read it: what it holds is not known.
	Unreadable bool
	Warnings   []string // what of the file could not be read although the rest was
	Done       int      // files dealt with so far, this one included
	Total      int      // files found
}

// Read reads the files of fsys and of the folders in it, in the order of their
// paths, one at a time. It passes over hidden files and folders and those named
// node_modules. Links are followed to files only, and only where fsys is a
// *Folder, which keeps them inside.
//
// A file that cannot be read does not end the sequence: its Result says why.
// The error, which does end it, is that of the context or wraps ErrNoDocuments.
func Read(ctx context.Context, fsys fs.FS, o Options) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		if o.MaxFileSize <= 0 {
			o.MaxFileSize = DefaultMaxFileSize
		}
		r := reader{fsys: fsys, max: o.MaxFileSize, pdf: pdfReader{cacheDir: o.CacheDir}}
		defer r.pdf.close()

		found, err := list(ctx, fsys)
		if err != nil {
			yield(Result{}, err)
			return
		}
		names := make(map[string]bool, len(found))
		for _, f := range found {
			names[f.path] = true
		}
		readable := 0
		for i, f := range found {
			if err := ctx.Err(); err != nil {
				yield(Result{}, err)
				return
			}
			id := f.path
			if !utf8.ValidString(id) {
				id = readableName(id, names)
			}
			result := Result{Path: id, Skipped: f.skip, Unreadable: f.unreadable, Done: i + 1, Total: len(found)}
			if f.skip == "" {
				document, warnings, err := r.read(ctx, f.path, id)
				if ctxErr := ctx.Err(); ctxErr != nil {
					yield(Result{}, ctxErr)
					return
				}
				if err != nil {
					result.Skipped, result.Unreadable = retrieval.CleanText(reason(err)), refused(err)
				} else {
					result.Document = document
					readable++
				}
				for _, warning := range warnings {
					result.Warnings = append(result.Warnings, retrieval.CleanText(warning))
				}
			}
			if !yield(result, nil) {
				return
			}
		}
		if readable == 0 {
			yield(Result{}, fmt.Errorf("%w: found %s; the formats read are %s", ErrNoDocuments, summary(found), formatNames))
		}
	}
}

// entry is a file that was found, or a folder that cannot be listed.
type entry struct {
	path string // as the file system has it, perhaps not UTF-8
	skip string // why it is not even opened

	unreadable bool
}

// list finds the files to read. The error is that of the context.
func list(ctx context.Context, fsys fs.FS) ([]entry, error) {
	var found []entry
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			found = append(found, entry{name, reason(err), refused(err)})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
		case name != "." && strings.HasPrefix(base, "."), base == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
		case d.Type()&fs.ModeSymlink != 0:
			found = append(found, entry{path: name, skip: linkProblem(fsys, name)})
		case d.Type().IsRegular():
			found = append(found, entry{path: name})
		default:
			found = append(found, entry{path: name, skip: "not a file with content"})
		}
		return nil
	})
	return found, err
}

// linkProblem says why a link is not followed, or nothing.
func linkProblem(fsys fs.FS, name string) string {
	folder, ok := fsys.(*Folder)
	if !ok {
		return "a link, not followed"
	}
	info, err := folder.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "a link to nothing"
	case err != nil:
		return "a link out of the folder, not followed"
	case info.IsDir():
		return "a link to a folder, not followed"
	case !info.Mode().IsRegular():
		return "not a file with content"
	}
	return ""
}

// reader reads the files of one folder.
type reader struct {
	fsys fs.FS
	max  int64
	pdf  pdfReader
}

// Parse reads the content of one file, such as one that was sent, into the
// document whose id is the file's name. The warnings tell what of it could not be
// read. The error says why nothing could, in words that follow the name and a
// colon, and wraps ErrFormat or ErrTooLarge where they apply.
func Parse(ctx context.Context, name string, data []byte, o Options) (retrieval.Document, []string, error) {
	if o.MaxFileSize <= 0 {
		o.MaxFileSize = DefaultMaxFileSize
	}
	r := reader{max: o.MaxFileSize, pdf: pdfReader{cacheDir: o.CacheDir}}
	defer r.pdf.close()
	if err := r.fits(data); err != nil {
		return retrieval.Document{}, nil, err
	}
	d, warnings, err := r.parse(ctx, name, data)
	for i, w := range warnings {
		warnings[i] = retrieval.CleanText(w)
	}
	switch {
	case ctx.Err() != nil:
		return retrieval.Document{}, nil, ctx.Err()
	case err != nil:
		return retrieval.Document{}, warnings, err
	}
	return d, warnings, nil
}

// read reads one file into the document with the id.
func (r *reader) read(ctx context.Context, name, id string) (retrieval.Document, []string, error) {
	data, err := r.content(name)
	if err != nil {
		return retrieval.Document{}, nil, err
	}
	return r.parse(ctx, id, data)
}

// parse makes the document with the id of the content of a file.
func (r *reader) parse(ctx context.Context, id string, data []byte) (retrieval.Document, []string, error) {
	d := retrieval.Document{ID: id, Source: id}
	load, err := r.loader(id, data)
	if err != nil {
		return d, nil, err
	}
	warnings, err := load(ctx, data, &d)
	if err != nil {
		return d, warnings, err
	}
	clean(&d)
	if !slices.ContainsFunc(d.Blocks, saysSomething) {
		return d, warnings, errors.New("no text found")
	}
	if d.Title == "" {
		d.Title = titleFromName(id)
	}
	return d, warnings, nil
}

// clean mends what a format's own escapes, such as "&#13;" in HTML, bring in.
func clean(d *retrieval.Document) {
	d.Title = retrieval.CleanText(d.Title)
	for key, value := range d.Metadata {
		if name := retrieval.CleanText(key); name != key {
			delete(d.Metadata, key)
			key = name
		}
		d.Metadata[key] = retrieval.CleanText(value)
	}
	for i := range d.Blocks {
		b := &d.Blocks[i]
		b.Text, b.Header, b.Place = retrieval.CleanText(b.Text), retrieval.CleanText(b.Header), retrieval.CleanText(b.Place)
		for j := range b.Headings {
			b.Headings[j] = retrieval.CleanText(b.Headings[j])
		}
	}
}

func saysSomething(b retrieval.Block) bool {
	visible := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	return strings.ContainsFunc(b.Text, visible) || strings.ContainsFunc(b.Header, visible)
}

// content gives the bytes of a file.
func (r *reader) content(name string) ([]byte, error) {
	f, err := r.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, r.max+1))
	if err != nil {
		return nil, err
	}
	return data, r.fits(data)
}

// fits checks the size of a file.
func (r *reader) fits(data []byte) error {
	switch {
	case int64(len(data)) > r.max:
		return fault{ErrTooLarge, fmt.Sprintf("larger than the limit of %d MB", r.max>>20)}
	case len(data) == 0:
		return errors.New("empty")
	}
	return nil
}

// fault says why a file cannot be read, in words of its own; is tells the kind.
type fault struct {
	is   error
	text string
}

func (f fault) Error() string        { return f.text }
func (f fault) Is(target error) bool { return target == f.is }

// reason gives what an error says of a file whose path is told anyway.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return "unreadable: " + pathError.Err.Error()
	}
	return err.Error()
}

// refused reports whether the file system did not let something be read that is
// there: permissions, a share that is gone, a broken disk.
func refused(err error) bool {
	var pathError *fs.PathError
	return errors.As(err, &pathError) && !errors.Is(err, fs.ErrNotExist)
}

// summary tells what was found in a folder by the ends of the names.
func summary(found []entry) string {
	if len(found) == 0 {
		return "no files"
	}
	counts := map[string]int{}
	for _, f := range found {
		kind := strings.ToLower(path.Ext(f.path))
		if kind == "" {
			kind = "without an extension"
		}
		counts[retrieval.CleanText(kind)]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for i, kind := range kinds {
		if i == 5 {
			parts = append(parts, "others")
			break
		}
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// readableName gives the path of a file whose name is not UTF-8 as it reads in
// Windows-1252, the most common of the other encodings, or with the foreign
// bytes written as %XX where another file has that name.
func readableName(name string, taken map[string]bool) string {
	decoded, err := charmap.Windows1252.NewDecoder().String(name)
	if err != nil || taken[decoded] {
		var b strings.Builder
		for i := range len(name) {
			if name[i] < utf8.RuneSelf {
				b.WriteByte(name[i])
			} else {
				fmt.Fprintf(&b, "%%%02X", name[i])
			}
		}
		decoded = b.String()
	}
	return decoded
}

// titleFromName makes a file's name readable: "leave-policy.md" becomes
// "Leave policy".
func titleFromName(name string) string {
	base := path.Base(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	base = strings.Join(strings.FieldsFunc(base, func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) }), " ")
	if base == "" {
		return path.Base(name)
	}
	first, n := utf8.DecodeRuneInString(base)
	return string(unicode.ToUpper(first)) + base[n:]
}
