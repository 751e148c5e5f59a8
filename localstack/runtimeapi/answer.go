package runtimeapi

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
)

func (p *process) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPayload+1))
	if err != nil {
		return // the process broke off in the middle: no answer
	}
	if len(body) > maxPayload {
		p.answer(r.PathValue("id"), nil, &FunctionError{Type: TypeResponseSize, Message: "Response payload size exceeded maximum allowed payload size (6291556 bytes)."})
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
		return
	}
	// A streamed response that failed on the way says so at its end.
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

// functionError reads the body of an error; kind is used where it gives no type.
func functionError(body []byte, kind string) *FunctionError {
	e := &FunctionError{}
	if err := json.Unmarshal(body, e); err != nil {
		*e = FunctionError{Message: string(body)} // Lambda passes on what it does not understand
	}
	if e.Type == "" {
		e.Type = kind
	}
	return e
}

func (p *process) accept(w http.ResponseWriter, r *http.Request, response []byte, err error) {
	if !p.answer(r.PathValue("id"), response, err) {
		refuse(w, http.StatusBadRequest, "InvalidRequestID")
		return
	}
	accepted(w)
}

// answer reports whether the invocation was waiting for one.
func (p *process) answer(id string, response []byte, err error) bool {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	for _, inv := range p.running {
		if inv.id == id && inv.delivered && !inv.answered {
			inv.answerLocked(response, err)
			return true
		}
	}
	return false
}

func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`+"\n") // nothing to do about a process that is gone
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"errorMessage":"`+kind+`","errorType":"`+kind+`"}`+"\n") // as above
}
