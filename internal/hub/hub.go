package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DefaultBase is the hub itself.
const DefaultBase = "https://huggingface.co"

// Client fetches files. The zero value fetches public ones from DefaultBase.
type Client struct {
	Base     string                       // the hub or a mirror of it; "": DefaultBase
	Token    string                       // for repositories that are not public; "": none
	HTTP     *http.Client                 // nil: http.DefaultClient
	Attempts int                          // how often in a row nothing may come before it gives up; 0: 5
	Wait     time.Duration                // before the second attempt, then twice as long; 0: half a second
	Progress func(done, total int64)      // bytes of the file so far, of how many (0: not told); nil: not told
	Changed  func(what string, err error) // told of each attempt that failed and is repeated; nil: not told
}

// File names a file of a repository.
type File struct {
	Repository string // such as ibm-granite/granitelib-rag-r1.0
	Revision   string // a branch, tag or commit; "": main
	Path       string // inside the repository, with slashes
	SHA256     string // what it must have, in hexadecimal; "": what the hub tells
}

var (
	// ErrMissing says that the hub has no such file, or does not show it.
	ErrMissing = errors.New("the hub does not have the file")
	// ErrChecksum says that what came is not the file.
	ErrChecksum = errors.New("the file is damaged")
)

// permanent marks an error that another attempt does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Download fetches a file to a path on this machine, whose folder it makes. A
// file that stands there with the right checksum is left as it is.
func (c *Client) Download(ctx context.Context, f File, to string) error {
	err := c.download(ctx, f, to)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("fetching %s of %s: %w", f.Path, f.Repository, err)
	}
	return nil
}

func (c *Client) download(ctx context.Context, f File, to string) error {
	address, err := c.address(f)
	if err != nil {
		return err
	}
	var d *description
	if err := c.again(ctx, "asking for its description", func() (bool, error) {
		d, err = c.describe(ctx, address)
		return false, err
	}); err != nil {
		return err
	}
	if f.SHA256 != "" {
		d.sum, d.hash = strings.ToLower(f.SHA256), "sha256"
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if d.sum != "" && d.verify(to) == nil {
		c.progress(d.size, d.size)
		return nil
	}
	// The name of the part tells which version it is of, so that two versions
	// are never mixed.
	part := to + "." + d.version() + ".part"
	if err := c.again(ctx, "fetching it", func() (bool, error) { return c.fetch(ctx, address, d, part) }); err != nil {
		return err
	}
	if err := d.verify(part); err != nil {
		_ = os.Remove(part) // going on with it would not help
		return err
	}
	return os.Rename(part, to)
}

// address is the file's URL.
func (c *Client) address(f File) (string, error) {
	base := c.Base
	if base == "" {
		base = DefaultBase
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no address of a hub; write it as %s", base, DefaultBase)
	}
	revision := f.Revision
	if revision == "" {
		revision = "main"
	}
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Repository == "" {
		return "", fmt.Errorf("%q is no path in a repository", f.Path)
	}
	elements := append(strings.Split(f.Repository, "/"), "resolve", revision)
	elements = append(elements, strings.Split(f.Path, "/")...)
	for i, e := range elements {
		elements[i] = url.PathEscape(e) // a branch may hold a slash
	}
	return strings.TrimSuffix(u.String(), "/") + "/" + strings.Join(elements, "/"), nil
}

// description is what the hub tells of a file.
type description struct {
	size int64  // 0: not told
	sum  string // "": not told
	hash string // sha256 or git, of sum
	etag string

	reached int64 // bytes of it that have come at most
}

func (d *description) version() string {
	if id := d.sum + d.etag; id != "" {
		return hex.EncodeToString(sumOf(id))[:12]
	}
	return "unknown"
}

func sumOf(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }

var (
	isSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	isSHA1   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// describe asks for a file's length and checksum. A large file's stand in the
// hub's own reply, before it sends on to where the bytes are.
func (c *Client) describe(ctx context.Context, address string) (*description, error) {
	d := &description{}
	for range 10 {
		r, err := c.send(ctx, http.MethodHead, address, nil, false)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		linked := r.Header.Get("X-Linked-Etag")
		etag := strings.ToLower(strings.Trim(strings.TrimPrefix(first(linked, r.Header.Get("ETag")), "W/"), `"`))
		redirect := r.StatusCode >= 300 && r.StatusCode < 400
		if linked != "" || !redirect {
			if d.etag = etag; isSHA256.MatchString(etag) {
				d.sum, d.hash = etag, "sha256"
			} else if isSHA1.MatchString(etag) {
				d.sum, d.hash = etag, "git"
			}
			size := first(r.Header.Get("X-Linked-Size"), r.Header.Get("Content-Length"))
			if redirect {
				size = r.Header.Get("X-Linked-Size")
			}
			d.size, _ = strconv.ParseInt(size, 10, 64)
			return d, nil
		}
		next, err := r.Location()
		if err != nil {
			return nil, permanent{fmt.Errorf("the hub sends on to nowhere: %w", err)}
		}
		address = next.String() // a repository that has another name now
	}
	return nil, permanent{errors.New("the hub sends on without end")}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// send sends a request and turns a status that means failure into an error.
func (c *Client) send(ctx context.Context, method, address string, header http.Header, follow bool) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, permanent{err}
	}
	r.Header.Set("User-Agent", "askback")
	r.Header.Set("Accept-Encoding", "identity") // or lengths and ranges would be of something else
	for k, v := range header {
		r.Header[k] = v
	}
	if c.Token != "" && sameHost(address, first(c.Base, DefaultBase)) {
		r.Header.Set("Authorization", "Bearer "+c.Token) // not sent on to another host
	}
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		if !follow {
			return http.ErrUseLastResponse
		}
		if !sameHost(next.URL.String(), address) { // net/http drops it for another name, but not for another port
			next.Header.Del("Authorization")
		}
		if len(before) >= 10 {
			return errors.New("the hub sends on without end")
		}
		return nil
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 400 || response.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return response, nil
	}
	_ = response.Body.Close()
	why := first(response.Header.Get("X-Error-Message"), http.StatusText(response.StatusCode))
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, permanent{fmt.Errorf("%w, or wants a token for it (status %d: %s); set HF_TOKEN if it is yours to read", ErrMissing, code, why)}
	case code == http.StatusNotFound:
		return nil, permanent{fmt.Errorf("%w (status 404: %s)", ErrMissing, why)}
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return nil, fmt.Errorf("the hub fails with status %d: %s", code, why)
	default:
		return nil, permanent{fmt.Errorf("the hub refuses with status %d: %s", code, why)}
	}
}

func sameHost(a, b string) bool {
	u, err1 := url.Parse(a)
	v, err2 := url.Parse(b)
	return err1 == nil && err2 == nil && u.Host == v.Host && u.Scheme == v.Scheme
}

// fetch fetches what is missing of a file; moved says that it got further than
// ever.
func (c *Client) fetch(ctx context.Context, address string, d *description, part string) (moved bool, err error) {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return false, permanent{err}
	}
	defer func() {
		if closeErr := f.Close(); err == nil && closeErr != nil {
			err = permanent{closeErr}
		}
	}()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, permanent{err}
	}
	if d.size > 0 && at == d.size {
		return false, nil
	}
	if d.size > 0 && at > d.size || d.sum == "" {
		at = 0 // nothing would show that the old part is of the same file
	}
	header := http.Header{}
	if at > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	r, err := c.send(ctx, http.MethodGet, address, header, true)
	if err != nil {
		return false, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusPartialContent || !strings.HasPrefix(r.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", at)) {
		at = 0 // it sends the whole file
		if r.StatusCode != http.StatusOK {
			_ = f.Truncate(0)
			return false, fmt.Errorf("the hub does not send what is missing (status %d)", r.StatusCode)
		}
	}
	if err := f.Truncate(at); err != nil {
		return false, permanent{err}
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return false, permanent{err}
	}
	total := d.size
	if total == 0 && r.ContentLength > 0 {
		total = at + r.ContentLength
	}
	w := &counter{ctx: ctx, f: f, done: at, total: total, tell: c.progress}
	_, err = io.Copy(w, r.Body)
	moved = w.done > d.reached // a server that starts anew each time gets nowhere
	d.reached = max(d.reached, w.done)
	if w.err != nil {
		return moved, permanent{w.err}
	}
	if err == nil && total > 0 && w.done != total {
		err = fmt.Errorf("%d of %d bytes came", w.done, total)
	}
	return moved, err
}

func (c *Client) progress(done, total int64) {
	if c.Progress != nil {
		c.Progress(done, total)
	}
}

// counter writes to a file and tells how far it is; more than was announced is
// an error.
type counter struct {
	ctx         context.Context
	f           *os.File
	done, total int64
	tell        func(done, total int64)
	err         error // of writing
}

func (w *counter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, w.ctx.Err() // what is on its way already is not waited for
	}
	if w.total > 0 && w.done+int64(len(p)) > w.total {
		w.err = fmt.Errorf("%w: more than the %d bytes that the hub announced came", ErrChecksum, w.total)
		return 0, w.err
	}
	n, err := w.f.Write(p)
	w.done += int64(n)
	w.err = err
	w.tell(w.done, w.total)
	return n, err
}

// again repeats what fails until it works, the context is over, or nothing has
// come several times in a row.
func (c *Client) again(ctx context.Context, what string, try func() (moved bool, err error)) error {
	attempts, wait := c.Attempts, c.Wait
	if attempts <= 0 {
		attempts = 5
	}
	if wait <= 0 {
		wait = 500 * time.Millisecond
	}
	pause := wait
	for failed := 0; ; {
		moved, err := try()
		var p permanent
		if err == nil || errors.As(err, &p) || ctx.Err() != nil {
			return err
		}
		if failed++; moved {
			failed, pause = 0, wait
		}
		if failed >= attempts {
			return fmt.Errorf("%s failed %d times: %w; run it again to go on where it ended", what, failed, err)
		}
		if c.Changed != nil {
			c.Changed(what, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, 30*time.Second)
	}
}

// verify holds a file to its description.
func (d *description) verify(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if d.size > 0 && info.Size() != d.size {
		return fmt.Errorf("%w: it has %d bytes instead of %d", ErrChecksum, info.Size(), d.size)
	}
	var h hash.Hash
	switch d.hash {
	case "sha256":
		h = sha256.New()
	case "git": // as git names a file's content
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", info.Size())
	default:
		return nil
	}
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != d.sum {
		return fmt.Errorf("%w: its %s checksum is %s instead of %s; run it again, and if it stays so, do not use the file", ErrChecksum, d.hash, sum, d.sum)
	}
	return nil
}
