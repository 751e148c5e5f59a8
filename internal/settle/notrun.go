package settle

import "errors"

// NotRun marks an error of middleware that did not call its handler because the context ended before that. Hosts don't count
// such a delivery as a run of the handler that was cut off.
func NotRun(err error) error { return &notRunError{err} }

// IsNotRun reports whether err is, or wraps, an error of [NotRun].
func IsNotRun(err error) bool {
	_, ok := errors.AsType[*notRunError](err)
	return ok
}

type notRunError struct{ error }

func (e *notRunError) Unwrap() error { return e.error }
