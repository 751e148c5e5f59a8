package outboxstorm

import (
	"context"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// Defect is a clause of the protocol that the outbox or its relay breaks in a run, to see that the run shows it. Those without an
// effect here are the [World]'s.
type Defect string

const (
	// NoProbe: a gap before the group's first visible event is taken for events that were published. ProbeByGetItem: it is looked at
	// by a read that answers beside a transaction in progress.
	NoProbe, ProbeByGetItem Defect = "no probe", "probe by GetItem"
	// Payloads: what the doorbell carries is sent, in place of the group's first events.
	Payloads Defect = "payloads"
	// EarlyDelete: events are deleted before SQS has confirmed them.
	EarlyDelete Defect = "delete before confirm"
	// BlindPark: an event that is gone is marked.
	BlindPark Defect = "blind park"
	// NoLock: numbers are not in the order of the commits.
	NoLock Defect = "no group lock"
	// OneStatement: a statement's rows are sent, also those that no statement before it has shown.
	OneStatement Defect = "one statement"
	// SkipLocked: rows that another transaction has locked are left out.
	SkipLocked Defect = "skip locked"
)

// misread turns an answer of Read into that of a defective relay.
func (s *storm) misread(ctx context.Context, store outbox.Store, group string, es []outbox.Entry, err error) ([]outbox.Entry, error) {
	switch s.plan.Defect {
	case Payloads:
		if len(es) == 0 {
			return es, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if carried := s.carried[group]; len(carried) > 0 && carried[0].Seq > es[0].Seq {
			delete(s.carried, group)
			return carried, nil
		}
	case EarlyDelete:
		var sendable []outbox.Entry
		for _, e := range es {
			if e.Parked == 0 {
				sendable = append(sendable, e)
			}
		}
		if len(sendable) > 0 {
			_, _ = store.Delete(ctx, sendable)
		}
	}
	return es, err
}

// carry notes what the record of a transaction carries.
func (s *storm) carry(es []fifo.Event, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var carried []outbox.Entry
	for i, e := range es {
		carried = append(carried, outbox.Entry{Event: e, Source: s.world.Source, Seq: first + int64(i)})
	}
	s.carried[es[0].Group] = carried
}
