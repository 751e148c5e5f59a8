package dedup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// An event that was running when its process crashed may have crashed it, and may crash the next one, with all that runs
// there. A host that can run the event apart learns of it. The record is released meanwhile: the wait for its turn is no run,
// and a crash during it accuses nobody. The note that the release leaves tells another process of the suspect, if that gets the
// message.

const (
	suspectNote = "dedup: was running in a process that crashed, started at "
	aloneNote   = " and alone" // behind the time: it was running apart from others
)

// suspect returns the error of a delivery that is to run apart from others; nil: it runs now.
func (o *Once) suspect(ctx context.Context, t task, l Lease) error {
	from := settle.Suspects(ctx)
	if from == 0 || t.attempt < from {
		return nil
	}
	started, alone, noted := startOf(l)
	switch {
	case l.Takeover:
		o.counts.takeovers.Add(1)
	case !noted:
		return nil
	}
	how := ""
	if alone {
		how = aloneNote
	}
	err := sqsonce.Unavailable(fmt.Errorf("%s%d%s: runs apart from other messages %s", suspectNote, started.UnixMilli(), how, o.record(t.key)))
	o.decided(ctx, t, Decision{Outcome: DecidedSuspect, Fence: l.Fence})
	o.o.Logger.WarnContext(ctx, "dedup: event was running in a process that crashed: it runs apart from other messages", "key", l.Key, "fence", l.Fence, "receive_count", l.ReceiveCount, "started", started)
	released, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.o.CallTimeout)
	defer cancel()
	o.logRelease(ctx, l, o.store.Release(released, l, err)) // not by Options.ErrorText: the note is read again
	if alone {
		return settle.NewLoneSuspect(err, started)
	}
	return settle.NewSuspect(err, started)
}

// startOf is when the process that crashed started the event, by its record. alone says that it ran the event as a suspect: a
// note is on the record that it left.
func startOf(l Lease) (started time.Time, alone, noted bool) {
	text, noted := strings.CutPrefix(strings.TrimPrefix(l.LastError, sqsonce.ErrUnavailable.Error()+": "), suspectNote)
	if l.Takeover {
		return time.UnixMilli(l.TakenFrom), noted, noted
	}
	ms, _, _ := strings.Cut(text, ":")
	ms, alone = strings.CutSuffix(ms, aloneNote)
	n, err := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n), alone, noted && err == nil
}
