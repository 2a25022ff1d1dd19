package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/askback/askback/server/keys"
	"github.com/askback/askback/server/tenant"
)

// door is who may come in by a pattern.
type door int

const (
	private door = iota // who has a key, if there are keys
	public              // everybody
	metrics             // who has a key for metrics, if there are keys
)

// caller is who sent a request.
type caller struct {
	id    string // that limits are counted by; "" is not limited
	known bool   // a key or Options.User has told whose it is
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// User is whose request the context belongs to, "" if nobody's in particular. With
// keys it is the key's tenant.
func User(ctx context.Context) string { return tenant.Of(ctx) }

// users decides whose request it is, and whether it is let in.
func (s *Server) users(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := s.mux.Handler(r)
		at := s.doors[pattern]
		address := addressOf(r)
		c := caller{id: address}
		if isLoopback(address) { // this machine's own user, or a proxy that all come by
			c.id = ""
		}
		user, id, p := "", "", (*Problem)(nil)
		switch {
		case s.o.Keys != nil:
			user, id, p = s.unlock(r, at)
			if p != nil && p.Status == http.StatusUnauthorized && at != public && r.Header.Get("Authorization") != "" {
				if wait, ok := s.failures.take(address); !ok {
					p = tooMany("too many attempts without a valid key came from this address", wait)
				}
			}
		case s.o.User != nil && at != public:
			var err error
			if user, err = s.o.User(r); err != nil {
				p = problem(http.StatusUnauthorized, "user", err.Error())
			}
			id = user
		}
		if p != nil && at != public {
			deny(w, r, p)
			return
		}
		ctx := r.Context()
		if id != "" {
			c = caller{"key " + id, true}
			ctx = tenant.With(ctx, user)
			if v, ok := ctx.Value(visitKey{}).(*visit); ok && s.o.Keys != nil {
				v.tenant = user
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callerKey{}, c)))
	})
}

// unlock says whose key a request has, or why it is not let in by that door.
func (s *Server) unlock(r *http.Request, at door) (user, id string, p *Problem) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if len(r.Header.Values("Authorization")) != 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", "", problem(http.StatusUnauthorized, "key", "a key is needed: send it in the header Authorization: Bearer "+keys.Prefix+"…; askback keys create makes one")
	}
	k, err := s.o.Keys.Check(strings.TrimSpace(text))
	switch {
	case errors.Is(err, keys.ErrUnknown), errors.Is(err, keys.ErrRevoked), errors.Is(err, keys.ErrExpired):
		return "", "", problem(http.StatusUnauthorized, "key", err.Error())
	case err != nil: // logged by the ring; where the file is is nobody's business
		p := problem(http.StatusServiceUnavailable, "keys", "keys cannot be checked at the moment; the server's log says why")
		p.retry = 5
		return "", "", p
	case at == metrics && !k.Metrics:
		return "", "", problem(http.StatusForbidden, "key", "this takes a key that was made for metrics")
	case at == private && k.Metrics:
		return "", "", problem(http.StatusForbidden, "key", "this key is for metrics alone")
	}
	return k.Tenant, k.ID, nil
}

// addressOf is the address that a request came from. Addresses of one IPv6 network
// are one, since who has one of them has all.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if a = a.Unmap().WithZone(""); a.Is6() && !a.IsLoopback() {
		network, _ := a.Prefix(64) // a valid length
		return network.String()
	}
	return a.String()
}

func isLoopback(address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && a.IsLoopback()
}

// Limits are how much one key may ask for, or without keys one address (a network of
// /64 for IPv6). Without keys, addresses of this machine are not limited. 0 is the
// default, negative is no limit.
type Limits struct {
	Turns   int // that begin in a minute, over whichever API; 0: 120
	Uploads int // requests with documents in a minute; 0: 60
}

const (
	defaultTurns   = 120
	defaultUploads = 60
	failures       = 20 // attempts without a valid key, from one address in a minute
	maxCallers     = 10_000
)

// limiter limits callers to so many events in a minute, half of which may come at
// once. It keeps a bounded number of callers.
type limiter struct {
	rate  rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	callers map[string]*counter
}

type counter struct {
	*rate.Limiter
	last time.Time
}

func newLimiter(perMinute int) *limiter {
	if perMinute < 0 {
		return nil
	}
	return &limiter{rate: rate.Limit(float64(perMinute) / 60), burst: max(1, perMinute/2), now: time.Now, callers: map[string]*counter{}}
}

// take counts an event, or says how long to wait until the next.
func (l *limiter) take(who string) (wait time.Duration, ok bool) {
	if l == nil || who == "" {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.callers[who]
	if c == nil {
		if len(l.callers) >= maxCallers {
			l.forget(now)
		}
		c = &counter{Limiter: rate.NewLimiter(l.rate, l.burst)}
		l.callers[who] = c
	}
	c.last = now
	r := c.ReserveN(now, 1)
	if wait = r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// forget drops the callers that a new one would be no better than, or if these are
// few the half that has been silent longest. It is called with mu held.
func (l *limiter) forget(now time.Time) {
	var at []time.Time
	for who, c := range l.callers {
		if c.TokensAt(now) >= float64(l.burst) {
			delete(l.callers, who)
		} else {
			at = append(at, c.last)
		}
	}
	if len(l.callers) < maxCallers/2 {
		return
	}
	slices.SortFunc(at, time.Time.Compare)
	middle := at[len(at)/2]
	for who, c := range l.callers {
		if !c.last.After(middle) {
			delete(l.callers, who)
		}
	}
}

// tooMany is the problem of who is over a limit.
func tooMany(detail string, wait time.Duration) *Problem {
	p := problem(http.StatusTooManyRequests, "rate", "")
	p.retry = int(max(1, math.Ceil(wait.Seconds())))
	p.Detail = fmt.Sprintf("%s; wait %d s", detail, p.retry)
	return p
}

// AllowTurn counts a turn of the context's caller that is about to begin, against
// Limits. The error is a *Problem. It is for what Handle serves.
func (s *Server) AllowTurn(ctx context.Context) error {
	if wait, ok := s.turns.take(callerOf(ctx).id); !ok {
		return tooMany("too many questions in a short time", wait)
	}
	return nil
}

// allowUpload does the same of an upload.
func (s *Server) allowUpload(ctx context.Context) error {
	if wait, ok := s.uploads.take(callerOf(ctx).id); !ok {
		return tooMany("too many uploads in a short time", wait)
	}
	return nil
}

// BeginTurn counts a turn that runs beside the API's own against Options.MaxTurns,
// until end is called. The error says that there are too many, or that the server is
// shutting down.
func (s *Server) BeginTurn() (end func(), err error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if err := s.hub.room(); err != nil {
		return nil, err
	}
	s.hub.active++
	return sync.OnceFunc(func() {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		s.hub.active--
	}), nil
}

// room says why no turn can begin. It is called with mu held.
func (h *hub) room() error {
	switch {
	case h.closed:
		return errShutdown
	case h.active >= h.s.o.MaxTurns:
		return errMany
	}
	return nil
}

// origins lets pages of Options.Origins use the API, and no others.
func (s *Server) origins(next http.Handler) http.Handler {
	if len(s.o.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if !slices.Contains(s.o.Origins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Askback-Turn, Askback-Next, Retry-After, Mcp-Session-Id, X-Request-Id")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
