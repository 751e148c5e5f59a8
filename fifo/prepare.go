package fifo

import (
	"context"
	"errors"

	"github.com/sqsonce/sqsonce"
)

// What a program needs that changes events before it publishes them, as package s3payload does.

// Check returns the event's key, see [DedupID], and the bytes of its message as SQS counts them. The error is that of Publish
// for an event with a bad field. Check doesn't compare the size with a limit, see Fits.
func (p *Publisher) Check(e Event) (key string, size int64, err error) {
	en := &entry{event: e}
	if err := p.fill(en); err != nil {
		return "", 0, p.badEvent(en, err)
	}
	return en.key, en.size, nil
}

// Fits reports whether the queue accepts a message of so many bytes. The first call with more than 1 KiB reads the queue's
// limit and waits for it, for 5 s at most. If it can't read the limit, it assumes 1 MiB.
func (p *Publisher) Fits(ctx context.Context, size int64) bool {
	e := &entry{size: size}
	_ = p.checkSize(e) // begins to read the limit
	p.awaitLimit(ctx)
	return p.checkSize(e) == nil
}

// refusedError returns the error of an event with Refused, or nil.
func (p *Publisher) refusedError(e *Event) error {
	if e.Refused == nil {
		return nil
	}
	if _, bad := errors.AsType[*sqsonce.OptionError](e.Refused); bad {
		return p.badEvent(p.unchecked(e), foreign(e.Refused))
	}
	return p.neverAccepted(e, foreign(e.Refused))
}
