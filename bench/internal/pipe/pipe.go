// Package pipe lets the process that measures ask another one, over its standard input and output: a line of JSON each
// way. Sockets would be counted with the contestant's own connections.
package pipe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

type request struct {
	Call string          `json:"call"`
	With json.RawMessage `json:"with,omitempty"`
}

type response struct {
	Reply json.RawMessage `json:"reply,omitempty"`
	Error string          `json:"error,omitempty"`
}

// Handler answers one call.
type Handler func(with json.RawMessage) (reply any, err error)

// Serve answers calls until in ends: the process that measures has gone away or needs nothing more.
func Serve(in io.Reader, out io.Writer, handlers map[string]Handler) error {
	requests, responses := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		if err := responses.Encode(answer(handlers[r.Call], r)); err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
	}
}

func answer(h Handler, r request) response {
	if h == nil {
		return response{Error: "no such call: " + r.Call}
	}
	reply, err := h(r.With)
	if err != nil {
		return response{Error: err.Error()}
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Reply: raw}
}
