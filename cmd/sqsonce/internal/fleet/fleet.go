// Package fleet asks running workers how they are: each has a status.Handler.
package fleet

import (
	"net/http"
	"time"

	"github.com/sqsonce/sqsonce/status"
)

// Worker is what a process said, or why it did not.
type Worker struct {
	URL    string         // of its status.Handler, as it was asked
	Report *status.Report // nil: see Err
	Err    error
	At     time.Time // when it answered
}

// Fleet is the processes with the workers.
type Fleet struct {
	Client  *http.Client
	Targets []string // a URL each, or dns:HOST:PORT: every address of the host
}
