package host

import (
	"errors"
	"fmt"

	"github.com/sqsonce/sqsonce"
)

// Problems collects the bad options and arguments of a package, so that its New function reports all of them at once.
type Problems struct {
	Package string
	errs    []error
}

// Add adds a problem if bad.
func (p *Problems) Add(bad bool, field, format string, args ...any) {
	if bad {
		p.errs = append(p.errs, &sqsonce.OptionError{Package: p.Package, Field: field, Problem: fmt.Sprintf(format, args...)})
	}
}

// Err joins the problems.
func (p *Problems) Err() error { return errors.Join(p.errs...) }
