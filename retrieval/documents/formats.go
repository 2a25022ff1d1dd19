package documents

import (
	"bytes"
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/askback/askback/retrieval"
)

// loader reads the content of a file into d: title, metadata and blocks. The
// warnings tell what was left out. The error says why nothing can be read, in
// words that follow the file's path and a colon.
type loader func(ctx context.Context, data []byte, d *retrieval.Document) (warnings []string, err error)

const formatNames = "Markdown, plain text, HTML, PDF, CSV, TSV, JSON, JSONL and DOCX"

// Extensions are the ends of names by which people know the formats; text files
// of any other are read as well.
func Extensions() []string {
	return []string{".md", ".markdown", ".txt", ".html", ".htm", ".pdf", ".csv", ".tsv", ".json", ".jsonl", ".docx"}
}

// loader chooses by what the content is, where that shows, then by the file's
// extension. Text of any other extension is plain text.
func (r *reader) loader(name string, data []byte) (loader, error) {
	ext := strings.ToLower(path.Ext(name))
	start := data[:min(len(data), 1024)]
	switch {
	case bytes.Contains(start, []byte("%PDF-")) && (ext == ".pdf" || bytes.HasPrefix(start, []byte("%PDF-"))):
		return r.pdf.load, nil
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return r.loadDOCX, nil
	case bytes.HasPrefix(start, []byte("\xD0\xCF\x11\xE0")):
		return nil, fault{ErrFormat, "an Office file that is encrypted or of the old kind (.doc, .xls, .ppt); save it as DOCX or PDF without a password"}
	case bytes.HasPrefix(start, []byte(`{\rtf`)):
		return nil, fault{ErrFormat, "an RTF file; save it as DOCX or PDF"}
	}
	if kind := http.DetectContentType(start); !strings.HasPrefix(kind, "text/") && kind != "application/octet-stream" {
		return nil, fault{ErrFormat, "not a text file: " + kind}
	} else if strings.HasPrefix(kind, "text/html") && ext != ".md" && ext != ".markdown" {
		return loadHTML, nil
	}
	switch ext {
	case ".md", ".markdown", ".mdown", ".mkd", ".mdx":
		return loadMarkdown, nil
	case ".html", ".htm", ".xhtml":
		return loadHTML, nil
	case ".csv", ".tsv", ".tab":
		return loadTable, nil
	case ".json":
		return loadJSON, nil
	case ".jsonl", ".ndjson":
		return loadJSONLines, nil
	case ".pdf":
		return nil, fault{ErrFormat, "not a PDF, although its name says so"}
	case ".docx":
		return nil, fault{ErrFormat, "not a DOCX file, although its name says so"}
	}
	return loadText, nil
}
