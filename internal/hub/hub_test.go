package hub_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/askback/askback/internal/hub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var content = bytes.Repeat([]byte("0123456789abcdef"), 10_000)

// server is a hub with one file, and a second server where its bytes are.
type server struct {
	*httptest.Server
	bytes    *httptest.Server
	data     []byte
	etag     string // "": the SHA-256 of content
	cut      int    // so many times the connection ends in the middle
	fail     int    // so many times the answer is 503
	ignore   bool   // ranges
	requests []string
	ranges   []string
	tokens   []string // that reached where the bytes are
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{data: content}
	s.bytes = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		s.tokens = append(s.tokens, r.Header.Get("Authorization"))
		if s.ignore {
			r.Header.Del("Range")
		}
		if s.cut > 0 {
			s.cut--
			w.Header().Set("Content-Length", fmt.Sprint(len(s.data)))
			var from int
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				w.Header().Set("Content-Length", fmt.Sprint(len(s.data)-from))
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.data)-1, len(s.data)))
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = w.Write(s.data[from : from+(len(s.data)-from)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.data))
	}))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests = append(s.requests, r.Method+" "+r.URL.EscapedPath())
		if s.fail > 0 {
			s.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		switch name, ok := strings.CutPrefix(r.URL.Path, "/somebody/models/resolve/"); {
		case strings.HasPrefix(r.URL.Path, "/old/name/"):
			http.Redirect(w, r, "/somebody/models/"+strings.TrimPrefix(r.URL.Path, "/old/name/"), http.StatusTemporaryRedirect)
		case !ok:
			http.NotFound(w, r)
		case name == "main/folder/secret":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(name, "/small.json"):
			small := []byte("{}\n")
			w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha1.Sum([]byte("blob 3\x00{}\n"))))
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(small))
		default:
			etag := s.etag
			if etag == "" {
				etag = fmt.Sprintf("%x", sha256.Sum256(content))
			}
			w.Header().Set("X-Linked-Etag", `"`+etag+`"`)
			w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
			http.Redirect(w, r, s.bytes.URL+"/blob", http.StatusFound)
		}
	}))
	t.Cleanup(func() { s.Server.Close(); s.bytes.Close() })
	return s
}

func (s *server) client(t *testing.T) *hub.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &hub.Client{Base: s.URL, HTTP: &http.Client{Transport: transport}, Wait: time.Millisecond}
}

var weights = hub.File{Repository: "somebody/models", Path: "folder/model.bin"}

func TestDownload(t *testing.T) {
	for _, tc := range []struct {
		name   string
		file   hub.File
		change func(s *server)
		fails  error
		ranges []string // asked for where the bytes are
	}{
		{"whole", weights, func(*server) {}, nil, []string{""}},
		{"by its old name", hub.File{Repository: "old/name", Path: "folder/model.bin"}, func(*server) {}, nil, []string{""}},
		{"of a branch", hub.File{Repository: "somebody/models", Revision: "refs/pr/1", Path: "folder/model.bin"}, func(*server) {}, nil, []string{""}},
		{"cut twice", weights, func(s *server) { s.cut = 2 }, nil, []string{"", "bytes=80000-", "bytes=120000-"}},
		{"cut, and ranges are ignored", weights, func(s *server) { s.cut, s.ignore = 1, true }, nil, []string{"", "bytes=80000-"}},
		{"always from the start and cut", weights, func(s *server) { s.cut, s.ignore = 100, true }, errAny, []string{"", "bytes=80000-", "bytes=80000-", "bytes=80000-"}},
		{"fails twice", weights, func(s *server) { s.fail = 2 }, nil, []string{""}},
		{"fails for good", weights, func(s *server) { s.fail = 100 }, errAny, nil},
		{"damaged", weights, func(s *server) { s.data = append([]byte("x"), content[1:]...) }, hub.ErrChecksum, []string{""}},
		{"too long", weights, func(s *server) { s.data = append(content[:len(content):len(content)], 'x') }, hub.ErrChecksum, []string{""}},
		{"another than listed", hub.File{Repository: weights.Repository, Path: weights.Path, SHA256: strings.Repeat("0", 64)}, func(*server) {}, hub.ErrChecksum, []string{""}},
		{"as listed", hub.File{Repository: weights.Repository, Path: weights.Path, SHA256: strings.ToUpper(fmt.Sprintf("%x", sha256.Sum256(content)))}, func(s *server) { s.etag = "opaque" }, nil, []string{""}},
		{"not there", hub.File{Repository: "somebody/else", Path: "x"}, func(*server) {}, hub.ErrMissing, nil},
		{"not shown", hub.File{Repository: "somebody/models", Path: "folder/secret"}, func(*server) {}, hub.ErrMissing, nil},
		{"outside", hub.File{Repository: "somebody/models", Path: "../x"}, func(*server) {}, errAny, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			tc.change(s)
			c := s.client(t)
			c.Attempts, c.Token = 3, "hf_secret"
			var last, of int64
			c.Progress = func(done, total int64) { last, of = done, total }
			to := filepath.Join(t.TempDir(), "a", "model.bin")
			err := c.Download(t.Context(), tc.file, to)
			if (err != nil) != (tc.fails != nil) || tc.fails != errAny && !errors.Is(err, tc.fails) {
				t.Fatalf("error %v, want %v", err, tc.fails)
			}
			if fmt.Sprint(s.ranges) != fmt.Sprint(tc.ranges) {
				t.Errorf("asked for %q, want %q", s.ranges, tc.ranges)
			}
			for _, token := range s.tokens {
				if token != "" {
					t.Errorf("the token went on to another server: %s", token)
				}
			}
			got, readErr := os.ReadFile(to)
			if tc.fails != nil {
				if readErr == nil {
					t.Error("a file stands in its place in spite of it")
				}
				return
			}
			if !bytes.Equal(got, content) || last != int64(len(content)) || of != last {
				t.Errorf("%d bytes came, told %d of %d", len(got), last, of)
			}
			// It is not fetched again.
			if err := c.Download(t.Context(), tc.file, to); err != nil || len(s.ranges) != len(tc.ranges) {
				t.Errorf("again: error %v, requests %q", err, s.ranges)
			}
			if parts, _ := filepath.Glob(to + "*.part"); len(parts) > 0 {
				t.Errorf("left behind: %q", parts)
			}
		})
	}
}

var errAny = errors.New("any error")

// A download that was stopped goes on in a later call, unless the file is
// another one by then.
func TestStoppedAndResumed(t *testing.T) {
	for _, other := range []bool{false, true} {
		s := newServer(t)
		c := s.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.Progress = func(done, total int64) {
			if done >= 32<<10 {
				cancel()
			}
		}
		to := filepath.Join(t.TempDir(), "model.bin")
		if err := c.Download(ctx, weights, to); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		parts, _ := filepath.Glob(to + "*.part")
		if len(parts) != 1 {
			t.Fatalf("parts %q", parts)
		}
		info, err := os.Stat(parts[0])
		if err != nil || info.Size() < 32<<10 {
			t.Fatalf("the part has %d bytes, error %v", info.Size(), err)
		}
		want := fmt.Sprintf("bytes=%d-", info.Size())
		if info.Size() == int64(len(content)) {
			t.Fatal("it was not stopped")
		}
		if other {
			s.data = bytes.ToUpper(content)
			s.etag = fmt.Sprintf("%x", sha256.Sum256(s.data))
			want = ""
		}
		c.Progress = nil
		if err := c.Download(t.Context(), weights, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, s.data) {
			t.Errorf("%d bytes, error %v", len(got), err)
		}
		if last := s.ranges[len(s.ranges)-1]; last != want {
			t.Errorf("asked for %q, want %q", last, want)
		}
	}
}

// A small file is checked by its git hash.
func TestSmallFile(t *testing.T) {
	s := newServer(t)
	dir := t.TempDir()
	f := hub.File{Repository: "somebody/models", Revision: "v1", Path: "folder/small.json"}
	to := filepath.Join(dir, "small.json")
	if err := os.WriteFile(to, []byte("[]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.client(t).Download(t.Context(), f, to); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(to); string(got) != "{}\n" {
		t.Errorf("got %q", got)
	}
	if want := "[HEAD /somebody/models/resolve/v1/folder/small.json GET /somebody/models/resolve/v1/folder/small.json HEAD /somebody/models/resolve/v1/folder/small.json]"; fmt.Sprint(s.requests) != want {
		t.Errorf("requests %s", s.requests)
	}
}

func TestNoHub(t *testing.T) {
	for _, base := range []string{"ftp://x", "nonsense", "http://127.0.0.1:1"} {
		c := hub.Client{Base: base, Attempts: 2, Wait: time.Millisecond}
		if err := c.Download(t.Context(), weights, filepath.Join(t.TempDir(), "x")); err == nil {
			t.Errorf("%s: no error", base)
		}
	}
}
