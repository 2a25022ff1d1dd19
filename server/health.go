package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Service is the state of one service.
type Service struct {
	Name     string `json:"name" doc:"As people know it, such as Qdrant"`
	OK       bool   `json:"ok"`
	Optional bool   `json:"optional,omitempty" doc:"Questions are answered without it, if not as well"`
	Error    string `json:"error,omitempty" doc:"What is wrong with it"`
}

// Health is that the server is alive.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

// Readiness is whether questions are answered, and what that depends on.
type Readiness struct {
	Ready    bool      `json:"ready"`
	Services []Service `json:"services"`
}

const (
	// checkLimit is how long a service has to show that it works.
	checkLimit = 2 * time.Second
	// checkAge is how old the outcome of a check may be, so that those who ask
	// often do not load the services.
	checkAge = time.Second
)

func (s *Server) registerHealth() {
	handle(s, huma.Operation{OperationID: "alive", Method: http.MethodGet, Path: "/healthz", Tags: []string{"health"},
		Summary: "Is the server alive?", Description: "Always ok while it is, whatever it depends on."},
		func(context.Context, *struct{}) (*struct{ Body Health }, error) {
			return &struct{ Body Health }{Health{"ok"}}, nil
		})

	state := &huma.MediaType{Schema: s.schema(Readiness{}, "Readiness")}
	handle(s, huma.Operation{OperationID: "ready", Method: http.MethodGet, Path: "/readyz", Tags: []string{"health"},
		Summary: "Are questions answered?", Description: "503 while a service that is needed does not work; conversations can be read all the same if their store works.",
		Responses: map[string]*huma.Response{
			"200": {Description: "Ready", Content: map[string]*huma.MediaType{"application/json": state}},
			"503": {Description: "Not ready", Content: map[string]*huma.MediaType{"application/json": state}},
		}},
		func(ctx context.Context, _ *struct{}) (*readyReply, error) {
			r := s.readiness(ctx)
			if s.o.Keys != nil && !callerOf(ctx).known { // what it depends on is told to those who have a key
				r.Services = []Service{}
			}
			if !r.Ready {
				return &readyReply{Status: http.StatusServiceUnavailable, Retry: "5", Body: r}, nil
			}
			return &readyReply{Status: http.StatusOK, Body: r}, nil
		})
}

type readyReply struct {
	Status int
	Retry  string `header:"Retry-After" hidden:"true"`
	Body   Readiness
}

// readiness looks at all that the server depends on.
func (s *Server) readiness(ctx context.Context) Readiness {
	r := Readiness{Ready: true, Services: append([]Service{}, s.services(ctx)...)}
	named := make(map[string]bool)
	for _, k := range r.Services {
		named[k.Name] = !k.OK
		r.Ready = r.Ready && (k.OK || k.Optional)
	}
	// What keeps the backend from being opened need not be a service that can be
	// checked, such as documents that are still being read.
	if _, err := s.Backend(); err != nil {
		r.Ready = false
		service := Service{Name: "askback", Error: err.Error()}
		var known *ServiceError
		if errors.As(err, &known) && known.Service != "" {
			service = Service{Name: known.Service, Error: known.Err.Error()}
		}
		if !named[service.Name] {
			r.Services = append(r.Services, service)
		}
	}
	return r
}

// checks runs the checks of Options, at most once at a time and not more often
// than checkAge says.
type checks struct {
	mu   sync.Mutex
	at   time.Time
	last []Service
}

// services gives the state of each service that can be checked.
func (s *Server) services(ctx context.Context) []Service {
	return s.check(ctx, func([]Service) bool { return true })
}

// check gives the last outcome if it is not old and will do, or a new one.
func (s *Server) check(ctx context.Context, will func([]Service) bool) []Service {
	s.checks.mu.Lock()
	defer s.checks.mu.Unlock()
	if time.Since(s.checks.at) < checkAge && will(s.checks.last) {
		return s.checks.last
	}
	// The outcome is for the next one too, who may wait longer than this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkLimit)
	defer cancel()
	now := make([]Service, len(s.o.Checks))
	var running sync.WaitGroup
	for i, c := range s.o.Checks {
		now[i] = Service{Name: c.Name, Optional: c.Optional}
		running.Go(func() {
			err := c.run(ctx)
			if now[i].OK = err == nil; err != nil {
				now[i].Error = err.Error()
			}
		})
	}
	running.Wait()
	s.checks.last, s.checks.at = now, time.Now()
	return now
}

// run runs the check, which may take no longer than ctx says even if it does not
// listen to that.
func (c Check) run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case err := <-done:
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %v", checkLimit)
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer within %v", checkLimit)
	}
}

// down is the service that an error comes from, or else the first that does not
// work now, or nil.
func (s *Server) down(ctx context.Context, err error) *ServiceError {
	if s.o.Blame != nil {
		if name := s.o.Blame(err); name != "" {
			return &ServiceError{Service: name, Err: err}
		}
	}
	isDown := func(k Service) bool { return !k.OK && !k.Optional }
	services := s.check(ctx, func(last []Service) bool { return slices.ContainsFunc(last, isDown) })
	if i := slices.IndexFunc(services, isDown); i >= 0 {
		return &ServiceError{Service: services[i].Name, Err: errors.New(services[i].Error)}
	}
	return nil
}
