package runtimeapi

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// routes is the Runtime API of one process, and as much of the Extensions API as registering takes.
func (p *process) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", p.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", p.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", p.invocationError)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", p.initError)
	mux.HandleFunc("POST /2020-01-01/extension/register", p.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", p.extensionNext)
	return mux
}

// next ends the invocation that the process has answered and waits for one to deliver.
func (p *process) next(w http.ResponseWriter, r *http.Request) {
	p.ready()
	select {
	case inv := <-p.work:
		p.deliver(w, inv)
	case <-p.gone:
	case <-r.Context().Done(): // the connection broke: so did the process, or it will ask again
	}
}

// ready: asking for the next invocation is what ends the last one, and the init phase.
func (p *process) ready() {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !p.initialized {
		p.initialized = true
		p.f.initDoneLocked()
	}
	// With several invocations at once nobody can tell which of the answered ones the asking loop worked on, and nobody
	// needs to: as many have ended as loops ask.
	i := slices.IndexFunc(p.running, func(inv *invocation) bool { return inv.answered })
	if i >= 0 {
		p.running[i].endLocked()
		p.running = slices.Delete(p.running, i, i+1)
	}
}

func (p *process) deliver(w http.ResponseWriter, inv *invocation) {
	p.f.mu.Lock()
	if p.dying {
		p.f.mu.Unlock()
		return // another process gets it
	}
	timeout := p.f.opts.Timeout
	deadline := time.Now().Add(timeout)
	inv.delivered = true
	inv.timer = time.AfterFunc(timeout, func() { p.timedOut(inv) })
	p.f.mu.Unlock()

	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", functionARN)
	h.Set("Lambda-Runtime-Trace-Id", traceID(inv.id, deadline.Add(-timeout)))
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(inv.event) // a process that does not get it is dead, and the invocation ends with it
}

// timedOut ends the process at the invocation's deadline. One that has answered and not asked for the next invocation is
// ended too, but its answer stands.
func (p *process) timedOut(inv *invocation) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !slices.Contains(p.running, inv) {
		return
	}
	if !inv.answered {
		inv.answerLocked(nil, timedOut(inv.id, p.f.opts.Timeout))
	}
	p.terminateLocked()
}

// traceID is an X-Ray header of a trace that is not sampled.
func traceID(id string, at time.Time) string {
	hex := strings.ReplaceAll(id, "-", "")
	return "Root=1-" + strconv.FormatInt(at.Unix(), 16) + "-" + hex[:24] + ";Parent=" + hex[16:] + ";Sampled=0"
}

func (p *process) register(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Lambda-Extension-Name") == "" {
		refuse(w, http.StatusBadRequest, "Extension.InvalidExtensionName")
		return
	}
	p.f.mu.Lock()
	p.extension = true
	p.f.mu.Unlock()
	w.Header().Set("Lambda-Extension-Identifier", requestID())
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"functionName":"`+functionName+`","functionVersion":"$LATEST","handler":"bootstrap"}`) // as above
}

// extensionNext never answers: an extension that registered for no event is told none.
func (p *process) extensionNext(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-p.gone:
	case <-r.Context().Done():
	}
}
