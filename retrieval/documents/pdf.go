package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/askback/askback/retrieval"
	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfReader reads PDF files with PDFium in WebAssembly, which is compiled for
// the first of them (seconds). The zero value works; close it after use.
type pdfReader struct {
	cacheDir string // where the compiled PDFium is kept; "" for nowhere
	cache    wazero.CompilationCache
	pool     pdfium.Pool
	instance pdfium.Pdfium
}

// pdfMemory is how much memory PDFium may take, in pages of 64 KiB: 256 MiB. A small
// file may unpack to any size; what takes more than that is not read.
const pdfMemory = 4096

// start gives an instance of PDFium that sees no files and no environment. The
// context of the first call is that of the later ones too.
func (r *pdfReader) start(ctx context.Context) (pdfium.Pdfium, error) {
	if r.instance != nil {
		return r.instance, nil
	}
	if r.pool == nil {
		config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).WithCloseOnContextDone(true).
			WithMemoryLimitPages(pdfMemory)
		if r.cacheDir != "" {
			cache, err := wazero.NewCompilationCacheWithDir(r.cacheDir)
			if err != nil {
				return nil, fmt.Errorf("starting PDFium: keeping it in %s: %w", r.cacheDir, err)
			}
			r.cache = cache
			config = config.WithCompilationCache(cache)
		}
		pool, err := webassembly.Init(webassembly.Config{
			// Cancelling the context stops PDFium wherever it is.
			Context:       experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)),
			RuntimeConfig: config,
			MaxTotal:      1,
			MaxIdle:       1,
			FSConfig:      wazero.NewFSConfig(),
			Stdout:        io.Discard,
			Stderr:        io.Discard,
		})
		if err != nil {
			return nil, fmt.Errorf("starting PDFium: %w", err)
		}
		r.pool = pool
	}
	instance, err := r.pool.GetInstanceWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting PDFium: %w", err)
	}
	r.instance = instance
	return instance, nil
}

func (r *pdfReader) close() {
	if r.pool != nil {
		_ = r.pool.Close() // there is nothing to save
		r.pool, r.instance = nil, nil
	}
	if r.cache != nil {
		_ = r.cache.Close(context.Background())
		r.cache = nil
	}
}

// load reads the text of a PDF by page.
func (r *pdfReader) load(ctx context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	lib, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	warnings, err := readPDF(ctx, lib, data, d)
	if err != nil && !errors.Is(err, errEncryptedPDF) {
		// A damaged file may have left PDFium in any state.
		_ = r.instance.Close()
		r.instance = nil
	}
	return warnings, err
}

var errEncryptedPDF = errors.New("an encrypted PDF; save it without a password")

func readPDF(ctx context.Context, lib pdfium.Pdfium, data []byte, d *retrieval.Document) ([]string, error) {
	opened, err := lib.OpenDocument(&requests.OpenDocument{File: &data})
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return nil, errEncryptedPDF
	case errors.Is(err, pdferrors.ErrFormat):
		return nil, errors.New("a damaged PDF")
	case err != nil:
		return nil, fmt.Errorf("a damaged PDF: %w", err)
	}
	document := opened.Document
	defer lib.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: document})

	count, err := lib.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: document})
	if err != nil {
		return nil, fmt.Errorf("a damaged PDF: %w", err)
	}
	var pages [][]pdfLine
	var warnings []string
	for page := range count.PageCount {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lines, err := pageLines(lib, document, page)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("page %d left out: %v", page+1, err))
		}
		pages = append(pages, lines)
	}
	addPages(d, pages)
	if len(d.Blocks) == 0 {
		return warnings, errors.New("no text found; if it is a scan, it needs text recognition first")
	}
	if d.Title == "" {
		d.Title = pdfTitle(lib, document)
	}
	return warnings, nil
}

// pdfLine is a line of text on a page.
type pdfLine struct {
	text     string
	size     float64 // of the letters, in points; 0 if the line has several
	baseline float64 // in points from the foot of the page
}

// pageLines gives the lines of a page in the order of their text.
func pageLines(lib pdfium.Pdfium, document references.FPDF_DOCUMENT, page int) ([]pdfLine, error) {
	opened, err := lib.FPDFText_LoadPage(&requests.FPDFText_LoadPage{
		Page: requests.Page{ByIndex: &requests.PageByIndex{Document: document, Index: page}},
	})
	if err != nil {
		return nil, err
	}
	text := opened.TextPage
	defer lib.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text})

	count, err := lib.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: text})
	if err != nil {
		return nil, err
	}
	var lines []pdfLine
	var line strings.Builder
	first, last, hyphen := 0, 0, false // characters of the line
	for i := range count.Count {
		char, err := lib.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: text, Index: i})
		if err != nil {
			return nil, err
		}
		r := rune(char.Unicode)
		if line.Len() == 0 {
			first = i
		}
		switch {
		case r == '\n' || r == '\r':
			if hyphen { // PDFium's mark of a word that goes on in the next line
				continue
			}
			lines = appendLine(lines, lib, text, line.String(), first, last)
			line.Reset()
		case r == 0, r == '\u00AD':
		case r == 0x02 || r == 0xFFFE:
			hyphen = true
		default:
			hyphen = false
			line.WriteRune(r)
			if !unicode.IsSpace(r) {
				last = i
			}
		}
	}
	return appendLine(lines, lib, text, line.String(), first, last), nil
}

// appendLine measures a line by its first and last characters.
func appendLine(lines []pdfLine, lib pdfium.Pdfium, text references.FPDF_TEXTPAGE, line string, first, last int) []pdfLine {
	line = strings.TrimSpace(retrieval.CleanText(line))
	if line == "" {
		return lines
	}
	measured := pdfLine{text: line}
	if size, err := lib.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: text, Index: first}); err == nil {
		measured.size = size.FontSize
	}
	if size, err := lib.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: text, Index: last}); err != nil || size.FontSize != measured.size {
		measured.size = 0
	}
	if origin, err := lib.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: text, Index: first}); err == nil {
		measured.baseline = origin.Y
	}
	return append(lines, measured)
}

// addPages makes headings of the lines in larger letters than most, and
// paragraphs of the lines that stand close to each other.
func addPages(d *retrieval.Document, pages [][]pdfLine) {
	dropRunningLines(pages)
	level, pitch := headingLevels(pages), usualPitch(pages)
	o := outline{document: d}
	for i, lines := range pages {
		place := fmt.Sprintf("page %d", i+1)
		var paragraph []string
		flush := func() {
			if len(paragraph) > 0 {
				o.add(retrieval.Block{Text: unwrap(paragraph), Place: place})
				paragraph = nil
			}
		}
		for j := 0; j < len(lines); j++ {
			line := lines[j]
			if n := level[line.size]; n > 0 {
				flush()
				title := line.text
				for j+1 < len(lines) && lines[j+1].size == line.size && distance(lines[j], lines[j+1]) < 1.5*line.size {
					j++
					title += " " + lines[j].text
				}
				o.open(heading{level: n, text: title, place: place})
				continue
			}
			if j > 0 && distance(lines[j-1], line) > 1.25*pitch {
				flush()
			}
			paragraph = append(paragraph, line.text)
		}
		flush()
	}
	o.close()
	d.Title = o.title
}

// dropRunningLines removes what stands at the head or foot of most pages, such
// as the document's title and the page's number, from all but the first.
func dropRunningLines(pages [][]pdfLine) {
	const fewest = 3 // pages, to tell that a line is repeated
	pattern := func(line pdfLine) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return '#'
			}
			return r
		}, line.text)
	}
	if len(pages) == 0 {
		return
	}
	first := pages[0]
	for range 3 { // lines of a head or foot
		times := map[string]int{}
		for _, lines := range pages {
			if len(lines) > 1 {
				times["head "+pattern(lines[0])]++
				times["foot "+pattern(lines[len(lines)-1])]++
			}
		}
		running := func(end string, line pdfLine) bool {
			n := times[end+pattern(line)]
			return n >= fewest && 2*n > len(pages)
		}
		for i, lines := range pages {
			if len(lines) > 1 && running("head ", lines[0]) {
				lines = lines[1:]
			}
			if len(lines) > 1 && running("foot ", lines[len(lines)-1]) {
				lines = lines[:len(lines)-1]
			}
			pages[i] = lines
		}
	}
	pages[0] = first
}

// distance gives how far apart the baselines of two lines are, in points.
func distance(a, b pdfLine) float64 { return math.Abs(a.baseline - b.baseline) }

// usualPitch gives the most common distance from one line to the next.
func usualPitch(pages [][]pdfLine) float64 {
	times := map[float64]int{}
	usual := math.Inf(1)
	for _, lines := range pages {
		for j := 1; j < len(lines); j++ {
			pitch := math.Round(2*distance(lines[j-1], lines[j])) / 2
			if pitch > 0 {
				times[pitch]++
			}
		}
	}
	for pitch, n := range times {
		if n > times[usual] || n == times[usual] && pitch < usual {
			usual = pitch
		}
	}
	return usual
}

// headingLevels gives the level of headings by the size of their letters, for
// the sizes that are plainly larger than that of most of the text.
func headingLevels(pages [][]pdfLine) map[float64]int {
	letters := map[float64]int{}
	body := 0.0
	for _, lines := range pages {
		for _, line := range lines {
			if line.size > 0 {
				letters[line.size] += len(line.text)
			}
		}
	}
	for size, n := range letters {
		if n > letters[body] || n == letters[body] && size > body {
			body = size
		}
	}
	var larger []float64
	for size := range letters {
		if size >= 1.15*body && body > 0 {
			larger = append(larger, size)
		}
	}
	slices.Sort(larger)
	slices.Reverse(larger)
	level := map[float64]int{}
	for i, size := range larger {
		level[size] = i + 1
	}
	return level
}

// pdfTitle gives the title in the file's properties unless a program made it up.
func pdfTitle(lib pdfium.Pdfium, document references.FPDF_DOCUMENT) string {
	found, err := lib.GetMetaData(&requests.GetMetaData{Document: document, Tags: &[]string{"Title"}})
	if err != nil || len(found.Tags) == 0 {
		return ""
	}
	title := strings.Join(strings.Fields(retrieval.CleanText(found.Tags[0].Value)), " ")
	lower := strings.ToLower(title)
	if strings.HasPrefix(lower, "microsoft ") || strings.HasPrefix(lower, "untitled") || path.Ext(lower) != "" && !strings.Contains(path.Ext(lower), " ") {
		return ""
	}
	return title
}
