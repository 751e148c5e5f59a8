package dynamooutbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func at(group, id string, seq int64) outbox.Entry {
	return outbox.Entry{Event: fifo.Event{ID: id, Group: group}, Seq: seq}
}

// Unpark and Discard are one request, whose repetition after a lost reply says that it is done.
func TestOperatorsRequestIsRepeated(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", 1, 2)
		b.park("g", outbox.OnRefusedHalt, 1, 2)
		b.faults(fault.Rule{Nth: 1, Do: fault.LoseReply})
		if err := b.box.Unpark(b.Context(), at("g", "g/v1", 1)); !errors.Is(err, outbox.ErrNotParked) {
			b.Errorf("Unpark: got %v, want ErrNotParked", err)
		}
		b.faults(fault.Rule{Nth: 1, Do: fault.LoseReply})
		if err := b.box.Discard(b.Context(), at("g", "g/v2", 2)); !errors.Is(err, outbox.ErrNotFound) {
			b.Errorf("Discard: got %v, want ErrNotFound", err)
		}
		b.wantRead("g", outbox.Known{}, 9, "1")
		b.faults(fault.Rule{Nth: 1, Do: fault.LoseReply})
		b.park("g", outbox.OnRefusedHalt, 1)
		b.wantRead("g", outbox.Known{}, 9, "1h")
	})
}

// The oldest first, at most limit, of this outbox, over all pages.
func TestParked(t *testing.T) {
	bubble(t, func(b *bed) {
		body := strings.Repeat("b", 300<<10) // a page of a Scan has 1 MB
		for n := range 12 {
			e := event(fmt.Sprint("g", n), 1)
			e.Body = body
			b.write(e, 1)
			if n != 5 {
				b.park(e.Group, outbox.OnRefusedHalt+outbox.RefusedPolicy(n%2), 1)
			}
			time.Sleep(time.Second)
		}
		list := func(limit int) string {
			es, err := b.box.Parked(b.Context(), limit)
			if err != nil {
				b.Error(err)
			}
			var all []string
			for _, e := range es {
				all = append(all, fmt.Sprintf("%s%.1s", e.Group, strings.ToLower(policies[e.Parked])))
			}
			return strings.Join(all, " ")
		}
		for limit, want := range map[int]string{1: "g0h", 3: "g0h g1s g2h", 100: "g0h g1s g2h g3s g4h g6h g7s g8h g9s g10h g11s"} {
			if got := list(limit); got != want {
				b.Errorf("limit %d: got %s, want %s", limit, got, want)
			}
		}
		it := encode(b.box.partition("broken"), 1, source, event("broken", 1), time.Now())
		it[attrVersion], it[attrParked] = number(2), text("HALT")
		b.set(it)
		es, err := b.box.Parked(b.Context(), 2)
		if e, ok := errors.AsType[*outbox.GroupError](err); !ok || !errors.Is(err, outbox.ErrBroken) || e.Group != "broken" || len(es) != 2 {
			b.Errorf("got %d events and %v, want 2 and that one cannot be read", len(es), err)
		}
	})
}

func TestParkFails(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", 1)
		for _, p := range []outbox.RefusedPolicy{0, 3, -1} {
			if err := b.box.Park(b.Context(), at("g", "g/v1", 1), p, ""); fields(err) != "policy" {
				b.Errorf("policy %d: got %v, want a OptionError", p, err)
			}
		}
		for code, want := range map[string]string{"AccessDeniedException": "denied", "ThrottlingException": "error"} {
			b.faults(fault.Rule{Prob: 1, Do: fault.Error, Code: code})
			_, listing := b.box.Parked(b.Context(), 1)
			for name, err := range map[string]error{
				"Park":    b.box.Park(b.Context(), at("g", "g/v1", 1), outbox.OnRefusedHalt, ""),
				"Unpark":  b.box.Unpark(b.Context(), at("g", "g/v1", 1)),
				"Discard": b.box.Discard(b.Context(), at("g", "g/v1", 1)),
				"Parked":  listing,
			} {
				if got := describe(nil, err); got != want || errors.Is(err, outbox.ErrNotFound) || errors.Is(err, outbox.ErrNotParked) {
					b.Errorf("%s of %s: got %v, want %s", code, name, err, want)
				}
			}
		}
	})
}
