package documents

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
)

// bombPDF is a PDF of a page whose content is that many MiB, packed a thousandfold.
func bombPDF(t *testing.T, mib int) []byte {
	t.Helper()
	var packed, b bytes.Buffer
	w := zlib.NewWriter(&packed)
	for spaces := bytes.Repeat([]byte(" "), 1<<20); mib > 0; mib-- {
		if _, err := w.Write(spaces); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(w, "BT /F1 12 Tf (The deposit is 200.) Tj ET")
	_ = w.Close()
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream", packed.Len(), packed.String()),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF", len(at)+1, xref)
	return b.Bytes()
}

// A small PDF that unpacks to more than PDFium may hold is not read, and memory stays
// bounded; the next one is read.
func TestPDFBomb(t *testing.T) {
	bomb := bombPDF(t, 1000)
	if len(bomb) > 2<<20 {
		t.Fatalf("%d bytes are no bomb", len(bomb))
	}
	before := peak(t)
	d, warnings, err := Parse(t.Context(), "bomb.pdf", bomb, Options{})
	if err == nil {
		t.Errorf("it is read: %+v, %q", d, warnings)
	}
	if after := peak(t); after-before > memoryFactor<<30 {
		t.Errorf("reading %d bytes took %d MiB", len(bomb), (after-before)>>20)
	} else {
		t.Logf("reading %d bytes took %d MiB at most", len(bomb), (after-before)>>20)
	}
	if d, _, err := Parse(t.Context(), "small.pdf", bombPDF(t, 1), Options{}); err != nil {
		t.Errorf("one that unpacks to 1 MiB: %+v, %v", d, err)
	}
}

// peak is the most memory that this process has had, in bytes; 0 where the system does
// not tell.
func peak(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	kb := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if kb == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(kb[1]))
	return n << 10
}
