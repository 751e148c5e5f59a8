package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// version is set by the build of the image, which has no Git.
var version string

// versionOf returns the version, as Go knows it for go install.
func versionOf() string {
	if b, ok := debug.ReadBuildInfo(); ok && version == "" {
		return b.Main.Version
	}
	return cmp.Or(version, "unknown")
}

// health lists the services, and the places that have something. It answers 503 until the queues, tables and functions of the flags exist.
func (w *world) health(rw http.ResponseWriter, r *http.Request) {
	state := "running"
	if !w.ready.Load() {
		state = "starting"
	}
	all := []map[string]any{}
	for _, s := range w.places.Load().All() {
		c, err := w.contents(r.Context(), s)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		if len(c.Queues)+len(c.Tables) > 0 {
			all = append(all, map[string]any{"region": s.Region, "account": s.Account, "queues": len(c.Queues), "tables": len(c.Tables)})
		}
	}
	rw.Header().Set("Content-Type", "application/json")
	if state != "running" {
		rw.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{ // the client disconnected
		"services": map[string]string{"sqs": state, "dynamodb": state, "dynamodbstreams": state, "lambda": state},
		"edition":  "localaws", "version": versionOf(), "places": all,
	})
}

const healthTimeout = 2 * time.Second

// checkHealth is the command localaws health, for the health check of a container without a shell.
func checkHealth(ctx context.Context, args []string, stderr io.Writer) error {
	f := flag.NewFlagSet("localaws health", flag.ContinueOnError)
	f.SetOutput(stderr)
	addr := f.String("addr", defaultAddr(), "`address` that localaws listens on")
	if err := f.Parse(args); err != nil {
		return err
	}
	err := askHealth(ctx, *addr, f.Args())
	if err != nil {
		fmt.Fprintln(stderr, "localaws health:", err)
	}
	return err
}

func askHealth(ctx context.Context, addr string, rest []string) error {
	to, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("-addr %s, arguments %q: want an address, and no arguments", addr, rest)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, localURL(to)+"/_localaws/health", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // it is not read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", r.URL, resp.Status)
	}
	return nil
}
