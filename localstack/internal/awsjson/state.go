package awsjson

import (
	"bytes"
	"encoding/json"
)

// State saves a service as lines, each of a kind, and loads them into a new server.
type State struct {
	// Save calls emit for each line, in the order in which Load needs them. Calls are served meanwhile.
	Save func(emit func(kind string, value any) error) error
	// Load adds a line to the server. It is called before the server serves calls.
	Load func(kind string, value []byte) error
}

// StateOf returns the State of a server. It is a function, so that the servers that embed a Server do not have it as a method.
func StateOf(s *Server) State { return s.svc.State }

// EmitAll emits a line of one kind for each value.
func EmitAll[V any](emit func(kind string, value any) error, kind string, values []V) error {
	for i := range values {
		if err := emit(kind, &values[i]); err != nil {
			return err
		}
	}
	return nil
}

// Unmarshal reads a line's value, and refuses fields that it does not know: the line may be of a newer version.
func Unmarshal(value []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
