package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqsonce/sqsonce/dedup/internal/failure"
)

// reply is a script's answer: a word and what it says about it. The first value that is not what it should be is kept in
// err, and the answer is then no answer.
type reply struct {
	values         []any
	sent, received time.Time // of the attempt that was answered
	err            error
}

func (r *reply) word() string { return r.text(0) }

func (r *reply) text(i int) string {
	if i < len(r.values) {
		if s, ok := r.values[i].(string); ok {
			return s
		}
	}
	r.fail(i, "a string")
	return ""
}

// bytes returns nil for an empty string.
func (r *reply) bytes(i int) []byte {
	if s := r.text(i); s != "" {
		return []byte(s)
	}
	return nil
}

func (r *reply) number(i int) int64 {
	if i < len(r.values) {
		if n, ok := r.values[i].(int64); ok {
			return n
		}
	}
	r.fail(i, "a number")
	return 0
}

// notAfter is the end of something that the server says lasts so many milliseconds more, for its holder: counted from
// the request, which was sent before the server looked at its clock. The server's milliseconds are rounded down, so that
// up to one of them was over when it looked.
func (r *reply) notAfter(i int) time.Time {
	return r.sent.Add(time.Duration(r.number(i)-1) * time.Millisecond)
}

// notBefore is the same end for those who wait for it: counted from the answer.
func (r *reply) notBefore(i int) time.Time {
	return r.received.Add(time.Duration(r.number(i)) * time.Millisecond)
}

func (r *reply) fail(i int, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: value %d of %.80q is not %s", errReply, i, r.values, want)
	}
}

// unexpected is the error of an answer that no script gives.
func (r *reply) unexpected() error {
	if r.err == nil && r.word() == "foreign" {
		return ErrRecord
	}
	if r.err == nil {
		r.err = fmt.Errorf("%w: %.80q", errReply, r.values)
	}
	return r.err
}

var errReply = errors.New("unexpected answer")

// causeText is what a release keeps of its cause, which may be nil.
func causeText(cause error) string {
	if cause == nil {
		return ""
	}
	return failure.Text(cause)
}
