package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/askback/askback/server"
)

// serveCommand is the server.
type serveCommand struct {
	Addr       string   `help:"Listen here. By default only this machine can reach it." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Hosts      []string `help:"Answer only requests to these names, so that no page of another site comes in by a name of its own. Default: this machine's, or any beyond it." placeholder:"NAME,..."`
	Origins    []string `help:"Sites whose pages may use the API, such as https://chat.example.com. Default: none but its own." placeholder:"ORIGIN,..."`
	Open       bool     `help:"Serve beyond this machine without keys: whoever reaches the address can read, write and delete everything."`
	TurnRate   int      `help:"Questions in a minute, of one key, or without keys of one address beyond this machine; 0 is no limit." default:"120"`
	Log        string   `help:"Write the log as text or json." enum:"text,json" default:"text"`
	LogLevel   string   `help:"Log from here on: debug, info (a line a request and a turn), warn or error." enum:"debug,info,warn,error" default:"info"`
	UploadRate int      `help:"Uploads in a minute, likewise." default:"60"`
	keysFlags
	sourceFlags
	gateFlags
	storeFlags
}

const (
	// endTurns is how long turns that run may take to end when the server shuts
	// down; after it they are stopped.
	endTurns = 5 * time.Second
	// endRequests is how long requests may take then to be answered.
	endRequests = 2 * time.Second
)

// Run serves until it is told to stop.
func (c *serveCommand) Run(ctx context.Context, out streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := c.checkFolder(); err != nil {
		return err
	}
	for _, origin := range c.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return usagef("--origins: %w; write it as https://chat.example.com", err)
		}
	}
	listener, err := c.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	ring, err := c.keysFlags.open(out.err)
	if err != nil {
		return err
	}
	if ring == nil && !c.Open && !loopback(listener.Addr()) {
		return usagef("--addr: %s can be reached from beyond this machine, and there are no keys, so that whoever reaches it could read, write and delete everything: make a key with askback keys create NAME --keys FILE, and serve with --keys FILE; or, where something else keeps strangers out, add --open (ASKBACK_OPEN=true)", listener.Addr())
	}
	backend := &serveBackend{command: c, err: out.err, keyed: ring != nil}
	defer backend.close()
	if err := backend.prepare(); err != nil {
		return err
	}
	metrics, meter, metricsPage, err := newMetrics()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return usagef("--log-level: %w", err)
	}
	log := newLog(c.Log, level, out.err)
	traces, endTraces, err := newTraces(ctx)
	if err != nil {
		return err
	}
	metrics.Models = c.asked()
	traces.Models = metrics.Models
	defer func() {
		if err := endTraces(); err != nil {
			log.Warn("some spans of turns were not sent; see OTEL_EXPORTER_OTLP_ENDPOINT", "error", err)
		}
	}()
	backend.assistant.parts.Observe = observers(metrics.Observe, traces.Observe, logged(log))
	s, err := server.New(server.Options{
		Open: backend.open, Checks: backend.checks(), Blame: blamed, Hosts: c.hosts(listener.Addr()), Log: log, Meter: meter, Version: version(),
		Keys: ring, Origins: c.Origins, Limits: server.Limits{Turns: rate(c.TurnRate), Uploads: rate(c.UploadRate)},
	})
	if err != nil {
		return err
	}
	backend.handlers(s, log)
	s.HandleMetrics("/metrics", readOnly(metricsPage))
	web := &http.Server{
		Handler: continued(s.Handler()), ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	defer web.Close()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	fmt.Fprintf(out.out, "askback serves http://%s\n", shown(listener.Addr()))
	if ring == nil && !loopback(listener.Addr()) {
		fmt.Fprintf(out.err, "askback: warning: listening on %s, beyond this machine, without keys: whoever reaches it can read, write and delete everything here\n", listener.Addr())
	}
	select {
	case err = <-s.Failed():
	case err = <-ended:
	case <-ctx.Done():
		stop() // a second interrupt ends the program at once
	}
	return errors.Join(err, c.shutdown(s, web))
}

// rate is a rate as options have it, where 0 is the default.
func rate(perMinute int) int {
	if perMinute <= 0 {
		return -1
	}
	return perMinute
}

// shutdown takes no more requests, lets turns end, stops those that do not, and
// waits until their readers have the end.
func (c *serveCommand) shutdown(s *server.Server, web *http.Server) error {
	grace, cancel := context.WithTimeout(context.Background(), endTurns)
	defer cancel()
	limit, cancelAll := context.WithTimeout(context.Background(), endTurns+endRequests)
	defer cancelAll()
	answered := make(chan error, 1)
	go func() { answered <- web.Shutdown(limit) }()
	err := s.Close(grace)
	select {
	case <-answered:
	case <-time.After(endRequests): // who listens to something else for ever
	}
	return err
}

// listen opens the address.
func (c *serveCommand) listen() (net.Listener, error) {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return nil, usagef("--addr: %q is no HOST:PORT, such as 127.0.0.1:8080", c.Addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, usagef("--addr: %s is in use by another program, perhaps by another askback; end it, or choose another port with --addr or ASKBACK_ADDR", c.Addr)
	case err != nil:
		return nil, usagef("--addr: %w", err)
	}
	return l, nil
}

// loopback reports whether only this machine reaches the address.
func loopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// shown is the address as a browser can open it.
func shown(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", t.Port)
	}
	return a.String()
}

// hosts are the names that the server answers to: those that were given, or, on a
// loopback address, where no other name can be meant, its own.
func (c *serveCommand) hosts(a net.Addr) []string {
	if len(c.Hosts) > 0 {
		return c.Hosts
	}
	if !loopback(a) {
		return nil
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && host != "" && !slices.Contains(names, strings.ToLower(host)) {
		names = append(names, host)
	}
	return names
}
