package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	version         = 1
	mostText        = 500
	mostOperator    = 128 // bytes of a record's owner
	mostConcurrency = 120_000

	// clocks is how much longer a record may seem to last to a worker whose clock is behind that of the store.
	clocks = time.Hour
)

// State is what operators ask of a consumer: it is paused, its concurrency is limited, or neither.
type State struct {
	// Paused stops receives and starts of handlers.
	Paused bool `json:"paused,omitempty"`
	// Concurrency is the most handlers that run at once in each worker. 0: as many as its program says.
	Concurrency int `json:"concurrency,omitempty"`
	// Reason and By say why, and who asked for it: 1 to 500 bytes of printable UTF-8 each.
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Until is when the state ends by itself. Set gives it, and Read returns it, in the caller's clock.
	Until time.Time `json:"-"`
}

// Open reports whether the consumer is neither paused nor limited.
func (s State) Open() bool { return !s.Paused && s.Concurrency == 0 }

// String says what is asked for, by whom, why, and until when.
func (s State) String() string {
	what := "open"
	switch {
	case s.Paused:
		what = "paused"
	case s.Concurrency > 0:
		what = fmt.Sprintf("at most %d at once", s.Concurrency)
	case s.By == "":
		return what
	default:
		return fmt.Sprintf("%s, as %s asked for: %s", what, s.By, s.Reason)
	}
	return fmt.Sprintf("%s until %s by %s: %s", what, s.Until.UTC().Format("2006-01-02 15:04:05 UTC"), s.By, s.Reason)
}

// Snapshot is the state of a consumer, and the record that [Set] may replace.
type Snapshot struct {
	State
	seen dedup.Record
}

// ID differs after each change of the state. It is empty before the first one.
func (s Snapshot) ID() string { return s.seen.Owner }

// ErrState says that the record of a consumer's state is broken, for example written by hand or by a later version, or that it
// lasts longer than 7 days. Workers ignore it.
var ErrState = errors.New("control: record of the state can't be used")

// Read returns a consumer's state, which is open from the start, and after its time has passed. With an error that matches
// [ErrState] the Snapshot is open. Set then replaces the record if it is completed and has an owner and a fence. Delete any other by
// hand: Set returns an error for it each time. All other errors are those of the arguments and the store.
func Read(ctx context.Context, store dedup.Inspector, consumer string) (Snapshot, error) {
	if err := check(store, consumer); err != nil {
		return Snapshot{}, err
	}
	key := host.ControlConsumer + "#" + consumer
	r, err := store.Inspect(ctx, key)
	if errors.Is(err, dedup.ErrNotFound) {
		return Snapshot{seen: dedup.Record{Lease: dedup.Lease{Key: key}}}, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	s, err := decode(r, time.Now())
	return Snapshot{s, r}, err
}

func check(store any, consumer string) error {
	p := host.Problems{Package: "control"}
	p.Add(host.IsNil(store), "store", "is nil")
	p.Consumer(consumer)
	return p.Err()
}

// Set asks a consumer for a state that lasts for d, by the store's clock, and ends the one of seen. It ignores s.Until. An open
// state ends a pause or a limit: workers log who asked for it and why.
//
// seen is the result of [Read] or Set. If another operator has changed the state since, Set leaves it and returns
// [dedup.ErrChanged]. A d less than 30 s or more than 7 days, and a State that is both paused and limited or lacks By or Reason, get
// a [*sqsonce.OptionError]. After any other error the outcome is unknown: read again.
func Set(ctx context.Context, store dedup.Keeper, seen Snapshot, s State, d time.Duration) (Snapshot, error) {
	p := host.Problems{Package: "control"}
	p.Add(host.IsNil(store), "store", "is nil")
	p.Add(seen.seen.Key == "", "seen", "is not the result of Read or Set")
	p.Add(d < host.LeastControl || d > host.MostControl, "d", "is %s, must be %s to %s", d, host.LeastControl, host.MostControl)
	s.check(&p)
	if err := p.Err(); err != nil {
		return Snapshot{}, err
	}
	data, err := s.encode()
	if err != nil {
		return Snapshot{}, err
	}
	r, err := store.Keep(ctx, seen.seen, cut.Text(s.By, mostOperator), data, d)
	if err != nil {
		return Snapshot{}, err
	}
	s.Until = r.ExpiresAt
	return Snapshot{s, r}, nil
}

func (s State) check(p *host.Problems) {
	p.Add(s.Paused && s.Concurrency != 0, "State", "is both paused and limited")
	p.Add(s.Concurrency < 0 || s.Concurrency > mostConcurrency, "State.Concurrency", "is %d, must be 0 to %d", s.Concurrency, mostConcurrency)
	for _, f := range []struct{ name, text string }{{"State.Reason", s.Reason}, {"State.By", s.By}} {
		bad := f.text == "" || len(f.text) > mostText || !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, unicode.IsControl)
		p.Add(bad, f.name, "is not 1 to %d bytes of UTF-8 without control characters", mostText)
	}
}

// stored is a State as its record has it.
type stored struct {
	Version int `json:"v"`
	State
}

func (s State) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(stored{version, s})
	return bytes.TrimSpace(b.Bytes()), err
}

// decode returns the state of a record at now.
func decode(r dedup.Record, now time.Time) (State, error) {
	bad := func(format string, args ...any) (State, error) {
		return State{}, fmt.Errorf("%w: key %s: "+format, append([]any{ErrState, r.Key}, args...)...)
	}
	var s stored
	switch {
	case r.State(now) != dedup.StateCompleted:
		return bad("it is %s", r.State(now))
	case r.ExpiresAt.IsZero():
		return bad("it has no end")
	case !now.Before(r.ExpiresAt):
		return State{}, nil
	case r.ExpiresAt.Sub(now) > host.MostControl+clocks:
		return bad("it lasts until %s, which is more than 7 days away", r.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if err := json.Unmarshal(r.Result.Data, &s); err != nil {
		return bad("%w", err)
	}
	if s.Version != version {
		return bad("it is of version %d, and this program knows %d", s.Version, version)
	}
	p := host.Problems{Package: "control"}
	if s.State.check(&p); p.Err() != nil {
		return bad("%w", p.Err())
	}
	s.Until = r.ExpiresAt
	return s.State, nil
}
