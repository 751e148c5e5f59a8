package ops

import (
	"errors"
	"slices"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/internal/opsview"
)

// Selection selects messages: those that all of the filters that are set select.
type Selection struct {
	// Classes are IDs of reason classes. Default: all.
	Classes []string
	// States of the messages' events. Default: all. What else decides about a message is said at the operation.
	States []dedup.RecordState
	// IDs are message IDs. Default: all.
	IDs []string
	// Filter is called for each message that the other filters select, concurrently. It must not change the message. Default: none.
	Filter func(*Message) bool
	// All says that no filter is meant to be set. [DLQ.Delete] needs it where none is. Default: false.
	All bool
}

// empty reports whether no filter is set. A list without an entry is none.
func (s *Selection) empty() bool {
	return len(s.Classes)+len(s.States)+len(s.IDs) == 0 && s.Filter == nil
}

// resolve reports what cannot be used. of is the name of the options.
func (s *Selection) resolve(of string, deletes bool) error {
	var errs []error
	for _, state := range s.States {
		if !slices.Contains(opsview.States(), state) {
			errs = append(errs, badField(of+".States", "has %.64q, which is no state", string(state)))
		}
	}
	switch {
	case s.All && !s.empty():
		errs = append(errs, badField(of+".All", "is set, must not be where a filter is"))
	case deletes && !s.All && s.empty():
		errs = append(errs, badField(of+".Selection", "has no filter: set one, or All if each message is meant"))
	}
	return errors.Join(errs...)
}

func (s *Selection) selects(m *Message) (selected bool, err error) {
	if errors.Is(m.Problem, opserr.ErrOtherSource) {
		return false, nil
	}
	wants := func(list []string, text string) bool { return len(list) == 0 || slices.Contains(list, text) }
	selected = wants(s.IDs, m.ID) && wants(s.Classes, m.Class.ID) && (len(s.States) == 0 || slices.Contains(s.States, m.State))
	if selected && s.Filter != nil {
		err = host.Contain(func() error { selected = s.Filter(m); return nil })
	}
	return selected, err
}
