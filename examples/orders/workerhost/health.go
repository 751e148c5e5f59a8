package workerhost

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// HealthTimeout is how long [AskHealth] waits. A platform's health check must wait longer.
const HealthTimeout = 3 * time.Second

// writeTimeout is how long a client may take to read an answer.
const writeTimeout = 10 * time.Second

// AskHealth returns an error unless the URL answers 200 within [HealthTimeout]. The error has the reason that the answer gives.
func AskHealth(url string) error {
	client := http.Client{Timeout: HealthTimeout}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close() // it is only read
	if resp.StatusCode != http.StatusOK {
		reason, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
		if err != nil {
			return fmt.Errorf("%s: %s: %w", url, resp.Status, err)
		}
		return fmt.Errorf("%s: %s: %s", url, resp.Status, reason)
	}
	return nil
}

// serveHealth serves the probes, and what else the handler has, on addr until stop. Without an addr nothing is served.
func serveHealth(addr string, probes http.Handler, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("environment variable HEALTH_ADDR: %w", err)
	}
	log.Info("serving /live, /ready, /stats and /running", "addr", l.Addr())
	server := &http.Server{Handler: probes, ReadHeaderTimeout: HealthTimeout, WriteTimeout: writeTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		// The worker goes on without its probes. The platform finds that they do not answer.
		if err := server.Serve(l); err != http.ErrServerClosed {
			log.Error("the probes are served no more", "error", err)
		}
	}()
	return func() {
		if err := server.Close(); err != nil {
			log.Error("closing the server of the probes", "error", err)
		}
		<-served
	}, nil
}
