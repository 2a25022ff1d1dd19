package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/askback/askback/retrieval/local"
	"github.com/askback/askback/retrieval/qdrant"
	"github.com/askback/askback/server/keys"
	"github.com/askback/askback/server/tenant"
)

// keysFlags choose the file of keys.
type keysFlags struct {
	Keys string `help:"File of API keys, which askback keys create makes." type:"path" placeholder:"FILE"`
}

// keysCommand looks after the keys of a server.
type keysCommand struct {
	Create keysCreate `cmd:"" help:"Make a key, and print it once."`
	List   keysList   `cmd:"" help:"List keys, without what lets anybody in."`
	Revoke keysRevoke `cmd:"" help:"Shut keys out. A server that runs takes them no more from then on."`
}

func (f keysFlags) file() (keys.File, error) {
	if f.Keys == "" {
		return keys.File{}, usagef("which file? Name it with --keys or ASKBACK_KEYS, as for askback serve")
	}
	return keys.File{Path: f.Keys}, nil
}

type keysCreate struct {
	Name    string `arg:"" help:"For people: whose it is, or what for."`
	Tenant  string `help:"Whose conversations and documents it reaches. Keys of one tenant share them." default:"main" env:"-" placeholder:"NAME"`
	Metrics bool   `help:"A key for /metrics and nothing else, of no tenant." env:"-"`
	Expires age    `help:"How long it is taken, such as 90d. Default: until it is revoked." env:"-" placeholder:"AGE"`
	keysFlags
}

// Run makes a key. The key alone goes to the output, so that a script can take it.
func (c *keysCreate) Run(out streams) error {
	f, err := c.file()
	if err != nil {
		return err
	}
	n := keys.New{Name: c.Name, Tenant: c.Tenant, Metrics: c.Metrics}
	if c.Metrics {
		n.Tenant = ""
	}
	if c.Expires > 0 {
		n.Expires = time.Now().Add(time.Duration(c.Expires))
	}
	k, secret, err := f.Create(n)
	if err != nil {
		return usageError{err}
	}
	whose := "tenant " + k.Tenant
	if k.Metrics {
		whose = "for /metrics"
	}
	fmt.Fprintf(out.err, "Key %s (%s, %s). It is shown this once; %s keeps only its hash.\n", k.ID, k.Name, whose, f.Path)
	fmt.Fprintln(out.out, secret.Reveal())
	return nil
}

type keysList struct {
	JSON bool `name:"json" help:"Print JSON." env:"-"`
	keysFlags
}

// Run lists the keys.
func (c *keysList) Run(out streams) error {
	f, err := c.file()
	if err != nil {
		return err
	}
	all, err := f.List()
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		e := json.NewEncoder(out.out)
		e.SetIndent("", "  ")
		type shown struct {
			keys.Key
			Hash string `json:"sha256,omitempty"`
		}
		list := make([]shown, len(all))
		for i, k := range all {
			list[i].Key = k
		}
		return e.Encode(list)
	}
	w := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTENANT\tCREATED\tSTATE\tNAME")
	for _, k := range all {
		state := "valid"
		switch err := k.Valid(time.Now()); {
		case errors.Is(err, keys.ErrRevoked):
			state = "revoked " + k.Revoked.Format(time.DateOnly)
		case errors.Is(err, keys.ErrExpired):
			state = "expired " + k.Expires.Format(time.DateOnly)
		case k.Expires != nil:
			state = "until " + k.Expires.Format(time.DateOnly)
		}
		whose := k.Tenant
		if k.Metrics {
			whose = "(metrics)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, whose, k.Created.Format(time.DateOnly), state, fileName(k.Name))
	}
	return w.Flush()
}

type keysRevoke struct {
	IDs []string `arg:"" name:"id" help:"Ids of keys, as askback keys list has them."`
	keysFlags
}

// Run revokes keys.
func (c *keysRevoke) Run(out streams) error {
	f, err := c.file()
	if err != nil {
		return err
	}
	for _, id := range c.IDs {
		k, err := f.Revoke(id)
		if err != nil {
			return usageError{err}
		}
		fmt.Fprintf(out.err, "Key %s (%s) is revoked.\n", k.ID, k.Name)
	}
	return nil
}

// open opens the keys for a server, nil if none are wanted.
func (f keysFlags) open(errOut io.Writer) (*keys.Ring, error) {
	if f.Keys == "" {
		return nil, nil
	}
	ring, err := keys.Open(f.Keys, nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("--keys: %s is not there; make a first key with: askback keys create NAME --keys %s", f.Keys, f.Keys)
	}
	if err != nil {
		return nil, usagef("--keys: %w", err)
	}
	if ring.Usable() == 0 {
		fmt.Fprintf(errOut, "askback: no key in %s is valid, so nobody gets in; askback keys create makes one, which needs no new start\n", f.Keys)
	}
	return ring, nil
}

// tenants puts tenants' documents beside those that are open.
func (b *serveBackend) tenants() *tenant.Knowledge {
	a := b.assistant
	return tenant.NewKnowledge(a.knowledge, func(ctx context.Context, name string) (tenant.Store, error) {
		if s, ok := a.knowledge.(*qdrant.Store); ok {
			return s.ForTenant("tenant/" + name) // the common documents' is without a slash
		}
		o := local.Options{Embedder: a.embedder, Identity: a.embedder.Identity()}
		if a.source.Index != "" {
			folder := a.source.Index + ".tenants"
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, err
			}
			o.Path = filepath.Join(folder, name+".db")
		}
		return local.Open(ctx, o)
	})
}

// where says where the documents for everyone are from.
func (b *serveBackend) where() string {
	s := b.assistant.source
	switch {
	case s.Docs != "":
		return "the folder " + s.Docs
	case b.qdrant != nil:
		return qdrantName(*b.qdrant)
	}
	return cmp.Or(s.Index, "the sample knowledge base")
}
