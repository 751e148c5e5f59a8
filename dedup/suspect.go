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
	aloneNote   = " and alone"  // behind the time: it was running apart from others
	besideNote  = ", not apart" // behind the time: it runs now, beside others, which may crash the process too
	crashNote   = ", crash "    // behind that: a number
)

// suspect returns the error of a delivery that is to run apart from others; nil: it runs now.
func (o *Once) suspect(ctx context.Context, t task, l Lease) error {
	from := settle.Suspects(ctx)
	if from == 0 {
		return nil
	}
	started, alone, noted := startOf(l)
	switch {
	case l.Takeover:
		o.counts.takeovers.Add(1)
	case !noted:
		return nil
	}
	how, line := "", "dedup: event was running in a process that crashed: it runs apart from other messages"
	if t.attempt < from {
		how, line = besideNote, "dedup: event was running in a process that crashed: no other message starts shortly before or after it"
	}
	if alone {
		how = aloneNote
	}
	crashes := crashesOf(l.LastError)
	if l.Takeover {
		crashes++
	}
	err := sqsonce.Unavailable(fmt.Errorf("%s%d%s%s%d: runs apart from other messages %s", suspectNote, started.UnixMilli(), how, crashNote, crashes, o.record(t.key)))
	o.decided(ctx, t, Decision{Outcome: DecidedSuspect, Fence: l.Fence})
	o.o.Logger.WarnContext(ctx, line, about(ctx, l.Key, "fence", l.Fence, "receive_count", l.ReceiveCount, "started", started)...)
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
	ms, _, noted := noteOf(l.LastError)
	if l.Takeover {
		return time.UnixMilli(l.TakenFrom), noted && !strings.HasSuffix(ms, besideNote), noted
	}
	ms, alone = strings.CutSuffix(ms, aloneNote)
	n, err := strconv.ParseInt(strings.TrimSuffix(ms, besideNote), 10, 64)
	return time.UnixMilli(n), alone, noted && err == nil
}

// noteOf returns the parts of the note in an error of a record, if there is one.
func noteOf(lastError string) (started, crash string, noted bool) {
	text, noted := strings.CutPrefix(strings.TrimPrefix(lastError, sqsonce.ErrUnavailable.Error()+": "), suspectNote)
	text, _, _ = strings.Cut(text, ":")
	started, crash, _ = strings.Cut(text, crashNote)
	return started, crash, noted
}

// crashesOf returns how many crashes the note in an error of a record counts.
func crashesOf(lastError string) int {
	_, crash, noted := noteOf(lastError)
	if !noted {
		return 0
	}
	n, _ := strconv.Atoi(crash)
	return max(1, n)
}

// Crashes returns how often the event's consumers have crashed since its last other outcome or reopen, as far as the record shows it
// at now. It may have been more often, because dedup writes a crash into the record from the second receive on.
func (r Record) Crashes(now time.Time) int {
	switch r.State(now) {
	case StateCompleted:
		return 0
	case StateCrashed:
		return crashesOf(r.LastError) + 1
	}
	return crashesOf(r.LastError)
}
