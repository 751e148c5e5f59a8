package runtimeapi

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// routes serves the Runtime API of one process, and the part of the Extensions API that an extension needs to register.
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

// next ends the invocation that has a result, and waits for an invocation to deliver.
func (p *process) next(w http.ResponseWriter, r *http.Request) {
	p.ready()
	select {
	case inv := <-p.work:
		p.deliver(w, inv)
	case <-p.exited:
	case <-r.Context().Done(): // the connection broke: the process has died, or will call next again
	}
}

// ready is called when the process asks for its next invocation, which ends the last one and the init phase.
func (p *process) ready() {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !p.initialized {
		p.initialized = true
		p.f.initDoneLocked()
	}
	// With several invocations at once it is not known which of those with a result the calling loop ran. It does not
	// matter: as many invocations have ended as loops call next.
	i := slices.IndexFunc(p.running, func(inv *invocation) bool { return inv.hasResult })
	if i >= 0 {
		p.running[i].endLocked()
		p.running = slices.Delete(p.running, i, i+1)
	}
}

func (p *process) deliver(w http.ResponseWriter, inv *invocation) {
	p.f.mu.Lock()
	if p.ending {
		p.f.mu.Unlock()
		return // another process gets the invocation
	}
	timeout := p.f.opts.Timeout
	deadline := time.Now().Add(timeout)
	inv.delivered = true
	inv.timer = time.AfterFunc(timeout, func() { p.timedOut(inv) })
	p.f.mu.Unlock()

	h := w.Header()
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", p.f.opts.arn())
	h.Set("Lambda-Runtime-Trace-Id", traceID(inv.id, deadline.Add(-timeout)))
	h.Set("Content-Type", "application/json")
	_, _ = w.Write(inv.event) // if this fails, the process is dead, and the invocation ends with it
}

// timedOut ends the process at the deadline of an invocation. It also ends a process that has sent the result but has not
// asked for the next invocation; that result stays valid.
func (p *process) timedOut(inv *invocation) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if !slices.Contains(p.running, inv) {
		return
	}
	if !inv.hasResult {
		inv.setResultLocked(nil, timedOut(inv.id, p.f.opts.Timeout))
	}
	p.terminateLocked()
}

// traceID is an X-Ray header of a trace that is not sampled. By Lineage Lambda counts how often an event has been through a
// function: https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader.
func traceID(id string, at time.Time) string {
	hex := strings.ReplaceAll(id, "-", "")
	return "Root=1-" + strconv.FormatInt(at.Unix(), 16) + "-" + hex[:24] + ";Parent=" + hex[16:] + ";Sampled=0;Lineage=1:" + hex[:8] + ":0"
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
	_, _ = io.WriteString(w, `{"functionName":"`+p.f.opts.name()+`","functionVersion":"$LATEST","handler":"bootstrap"}`) // as in deliver
}

// extensionNext never returns an event, because the extension registered for none.
func (p *process) extensionNext(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-p.exited:
	case <-r.Context().Done():
	}
}

func (p *process) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload+1))
	if err != nil {
		return // the response is incomplete: the invocation gets no result
	}
	if len(body) > maxPayload {
		p.setResult(r.PathValue("id"), nil, &FunctionError{Type: typeResponseSize, Message: "Response payload size exceeded maximum allowed payload size (6291556 bytes)."})
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
		return
	}
	// A streamed response that failed has the error in its trailer.
	var failure error
	if kind := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		payload, err := base64.StdEncoding.DecodeString(r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))
		if err != nil {
			payload = nil
		}
		failure = functionError(payload, kind)
	}
	p.accept(w, r, body, failure)
}

func (p *process) invocationError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload))
	if err != nil {
		return
	}
	p.accept(w, r, nil, functionError(body, r.Header.Get("Lambda-Runtime-Function-Error-Type")))
}

func (p *process) initError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload))
	if err != nil {
		return
	}
	p.f.mu.Lock()
	p.initErr = functionError(body, r.Header.Get("Lambda-Runtime-Function-Error-Type"))
	p.f.mu.Unlock()
	accepted(w)
}

// functionError decodes an error. If it has no type, the type is kind.
func functionError(body []byte, kind string) *FunctionError {
	e := &FunctionError{}
	if err := json.Unmarshal(body, e); err != nil {
		*e = FunctionError{Message: string(body)} // Lambda passes on a body that it cannot decode
	}
	if e.Type == "" {
		e.Type = kind
	}
	return e
}

func (p *process) accept(w http.ResponseWriter, r *http.Request, response []byte, err error) {
	if !p.setResult(r.PathValue("id"), response, err) {
		refuse(w, http.StatusBadRequest, "InvalidRequestID")
		return
	}
	accepted(w)
}

// setResult reports whether the invocation was waiting for a result.
func (p *process) setResult(id string, response []byte, err error) bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	for _, inv := range p.running {
		if inv.id == id && inv.delivered && !inv.hasResult {
			inv.setResultLocked(response, err)
			return true
		}
	}
	return false
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`+"\n") // as in deliver
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errorMessage":"`+kind+`","errorType":"`+kind+`"}`+"\n") // as in deliver
}
