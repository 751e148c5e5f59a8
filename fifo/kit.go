package fifo

import (
	"context"
	"errors"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/hook"
)

// This file is for programs of ours that change events before they publish them, as package s3payload does. They call it by
// package internal/fifokit.

func init() {
	hook.Offer(map[string]any{
		"fifo.forward": (*Publisher).forward, "fifo.check": (*Publisher).keyAndSize, "fifo.fits": (*Publisher).fits,
		"fifo.refuse": (*Publisher).refuse, "fifo.publishAll": (*Publisher).publishAll, "fifo.openLane": (*Publisher).openUserLane,
		"fifo.namespace": func(p *Publisher) string { return p.namespace }, "fifo.isFIFO": func(p *Publisher) bool { return p.fifo },
	})
}

// refuse returns the error of an event that its caller, which would have changed it, could not prepare. The error matches
// [ErrUnknownOutcome] if an earlier call may have put the event into the queue, else [ErrNotSent]. A [*sqsonce.OptionError] always
// matches [ErrNotSent].
func (p *Publisher) refuse(ctx context.Context, e Event, why error) error {
	_, err := p.enqueue(ctx, p.shared, &entry{event: e, refused: why}, nil, 0)
	return err
}

// keyAndSize returns the event's key, see [DedupID], and the bytes of its message as SQS counts them. The error is that of Publish
// for an event with a bad field. It doesn't compare the size with a limit, see fits.
func (p *Publisher) keyAndSize(e Event) (key string, size int64, err error) {
	en := &entry{event: e}
	if err := p.fill(en); err != nil {
		return "", 0, p.badEvent(en, err)
	}
	return en.key, en.size, nil
}

// fits reports whether the queue accepts a message of so many bytes. The first call with more than 1 KiB reads the queue's
// limit and waits for it, for 5 s at most. If it can't read the limit, it assumes 1 MiB.
func (p *Publisher) fits(ctx context.Context, size int64) bool {
	e := &entry{size: size}
	_ = p.checkSize(e) // begins to read the limit
	p.awaitLimit(ctx)
	return p.checkSize(e) == nil
}

// refusedError is the error of an entry that was refused, or nil.
func (p *Publisher) refusedError(e *entry) error {
	if e.refused == nil {
		return nil
	}
	if _, bad := errors.AsType[*sqsonce.OptionError](e.refused); bad {
		return p.badEvent(p.unchecked(&e.event), foreign(e.refused))
	}
	return p.neverAccepted(&e.event, foreign(e.refused))
}
