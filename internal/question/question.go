// Package question carries a question with an error: a call of our own that tells whether what failed for one message works
// for another one. Protocol, section 17. It imports nothing of this module, so that every package may use it.
package question

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"
)

// Question asks whether something that messages need works.
type Question struct {
	// ID is equal for questions about the same thing.
	ID any
	// Ask returns nil where it works.
	Ask func(context.Context) error
	// Patience is how long Ask may take, where that is longer than [Timeout].
	Patience time.Duration
}

// Timeout is how long a host lets a question take that says nothing of it.
const Timeout = 10 * time.Second

// Within is how long a host lets the question take.
func (q Question) Within() time.Duration { return max(Timeout, q.Patience) }

// Of returns the question of the outermost error in err that has one, and false where none does. Such an error is a claim: nobody
// can be asked.
func Of(err error) (Question, bool) {
	if e, ok := errors.AsType[*asked](err); ok {
		return e.question, true
	}
	return Question{}, false
}

// With returns err with a question. It matches what err matches.
func With(err error, q Question) error { return &asked{err, q} }

// ByFunction is the question of a user's function. Two closures of one function literal ask about the same thing.
func ByFunction(ask func(context.Context) error) Question {
	return Question{ID: reflect.ValueOf(ask).Pointer(), Ask: ask}
}

type asked struct {
	error
	question Question
}

func (e *asked) Unwrap() error { return e.error }

// KeyPrefix stands between the consumer and the rest of the key of a record that a question writes. No event has such a key: a
// consumer's name has no '#', and the key of an event that begins with '#' is hashed.
const KeyPrefix = "##ask/"

// IsKey reports whether a record's key is that of a question, and of no event.
func IsKey(key string) bool {
	at := strings.IndexByte(key, '#')
	return at >= 0 && strings.HasPrefix(key[at:], KeyPrefix)
}

// FromStore marks an error that comes from an inbox's store, and not from the handler whose transaction it was.
func FromStore(err error) error {
	if err == nil {
		return nil
	}
	return &fromStore{err}
}

// IsFromStore reports whether err is one of FromStore.
func IsFromStore(err error) bool {
	_, ok := errors.AsType[*fromStore](err)
	return ok
}

type fromStore struct{ error }

func (e *fromStore) Unwrap() error { return e.error }
