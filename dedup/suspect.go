package dedup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/settle"
)

// An event that was running when its process crashed may have crashed it, and may crash the next one, with all that runs
// there. A host that can run the event apart learns of it. The record is released meanwhile: the wait for its turn is no run,
// and a crash during it accuses nobody. The note that the release leaves tells another process of the suspect, if that gets the
// message.

const (
	suspectNote = "dedup: was running in a process that crashed, started at "
	aloneNote   = " and alone"                      // behind the time: it was running apart from others, and was the last to start
	besideNote  = ", not apart"                     // behind the time: it runs now, beside others, which may crash the process too
	crashNote   = ", crash "                        // behind that: a number
	apartNote   = " runs apart from other messages" // behind a colon
	startedNote = ", started at "                   // behind ErrCrashed: a time
	processNote = ", in process "                   // behind these: what crashed, if that is known
	startsNote  = " (starts "                       // behind that: the name of the record of the suspect that started last, and ")"
)

// suspect returns the error of a delivery that is to run apart from others; nil: it runs now.
func (o *Once) suspect(ctx context.Context, t *task, l Lease) error {
	from := settle.Suspects(ctx)
	if from == 0 {
		return nil
	}
	started, alone, noted := o.startOf(ctx, l)
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
	err := sqsonce.Unavailable(fmt.Errorf("%s%d%s%s%d:%s%s%s%s) %s", suspectNote, started.UnixMilli(), how, crashNote, crashes, apartNote, inProcess(l), startsNote, o.apart.name, o.record(t.key)))
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

// startOf is when the process that crashed started the event, by its record. alone says that it ran the event as a suspect, because a
// note is on the record that it left, and that no other suspect started after it.
func (o *Once) startOf(ctx context.Context, l Lease) (started time.Time, alone, noted bool) {
	n, noted := noteOf(l.LastError)
	if l.Takeover {
		return time.UnixMilli(l.TakenFrom), noted && n.how != besideNote && o.startedLast(ctx, n.starts, l.TakenOwner), noted
	}
	return time.UnixMilli(n.started), n.how == aloneNote, noted
}

// note is what a release after a crash leaves in the error of a record.
type note struct {
	started int64
	how     string
	crashes int
	process string // "": not known
	starts  string // the name of the record of the suspect that started last; "": an earlier version's note
}

// noteOf returns the note of a suspect in an error of a record, if there is one.
func noteOf(lastError string) (n note, noted bool) {
	text, noted := strings.CutPrefix(strings.TrimPrefix(lastError, sqsonce.ErrUnavailable.Error()+": "), suspectNote)
	if !noted {
		return note{}, false
	}
	text, rest, _ := strings.Cut(text, ":")
	text, crash, _ := strings.Cut(text, crashNote)
	for _, how := range []string{aloneNote, besideNote} {
		if ms, found := strings.CutSuffix(text, how); found {
			text, n.how = ms, how
		}
	}
	var err error
	n.started, err = strconv.ParseInt(text, 10, 64)
	n.crashes, _ = strconv.Atoi(crash)
	n.crashes = max(1, n.crashes)
	rest = strings.TrimPrefix(rest, apartNote)
	if name, found := strings.CutPrefix(rest, processNote); found {
		name, rest, _ = strings.Cut(name, " ")
		n.process, rest = host.ValidProcess(name), " "+rest
	}
	if name, found := strings.CutPrefix(rest, startsNote); found {
		n.starts, _, _ = strings.Cut(name, ")")
	}
	return n, err == nil
}

// inProcess is the part of a note that names the process that crashed.
func inProcess(l Lease) string {
	name := processOf(l.TakenOwner)
	if !l.Takeover { // an earlier note's
		n, _ := noteOf(l.LastError)
		name = n.process
	}
	if name == "" {
		return ""
	}
	return processNote + name
}

// crashedNote is what releaseCrashed leaves in the error of a record. It is no error of the consumer's, so it goes past Options.ErrorText.
type crashedNote struct{ lease Lease } // which took the record over

func (n crashedNote) Error() string {
	return fmt.Sprint(ErrCrashed, startedNote, n.lease.TakenFrom, inProcess(n.lease))
}

// crashedRun returns the run that crashed, by the error of a record that was released after it.
func crashedRun(lastError string) (process string, fence int64, crashed bool) {
	if n, noted := noteOf(lastError); noted {
		return n.process, n.started, true
	}
	rest, crashed := strings.CutPrefix(lastError, ErrCrashed.Error())
	if !crashed || rest == "" { // without a run: of an earlier version
		return "", 0, crashed
	}
	rest, crashed = strings.CutPrefix(rest, startedNote)
	ms, name, _ := strings.Cut(rest, processNote)
	fence, err := strconv.ParseInt(ms, 10, 64)
	return host.ValidProcess(name), fence, crashed && err == nil
}

// crashesOf returns how many crashes the note in an error of a record counts. What releaseCrashed leaves is one crash.
func crashesOf(lastError string) int {
	if n, noted := noteOf(lastError); noted {
		return n.crashes
	}
	if _, _, crashed := crashedRun(lastError); crashed {
		return 1
	}
	return 0
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
