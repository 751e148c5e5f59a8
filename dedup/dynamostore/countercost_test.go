package dynamostore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/settle"
	"github.com/sqsonce/sqsonce/limit"
)

// A fleet with a backlog writes once for some starts: for 2 of them at 10 a second, for 17 at 100 a second.
func TestCounterCost(t *testing.T) {
	for rate, most := range map[int]float64{10: 0.6, 100: 0.06} {
		runBed(t, fmt.Sprint(rate, " a second"), func(t *testing.T, b *bed) {
			const processes = 5
			perProcess := 6 * rate
			var stores []*Store
			var handlers sync.WaitGroup
			began := time.Now()
			for range processes {
				s := b.store()
				stores = append(stores, s)
				l := must.Get(limit.New([]limit.Rule{{Name: "r", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: rate}}, Counter: NewCounter(s)}}))(t)
				defer func() { must.Do(t, l.Close(t.Context())) }()
				for i := range perProcess {
					handlers.Go(func() { runHeld(t, l, &sqsonce.Message{ID: fmt.Sprint(i), ReceiveCount: 1}) })
				}
			}
			handlers.Wait()
			took, units := time.Since(began), 0.0
			for _, s := range stores {
				units += s.Stats().WriteUnits
			}
			units /= float64(processes * perProcess)
			t.Logf("%.3f write units a start, in %s", units, took)
			if units > most || took > 32*time.Second {
				t.Errorf("%.3f write units a start, in %s; want at most %g, in 30 s", units, took, most)
			}
		})
	}
}

// runHeld runs a message as a host does that holds all of them.
func runHeld(t *testing.T, l *limit.Limiter, m *sqsonce.Message) {
	for {
		ctx, _ := settle.New(settle.WithHolding(t.Context()))
		settle.HeldBy(ctx, holdsAll{})
		err := l.Do(ctx, m, func(context.Context) error { return nil })
		if err == nil {
			return
		}
		turn, held := settle.TurnOf(err)
		if !held {
			t.Errorf("message %s: %v, want a turn", m.ID, err)
			return
		}
		select {
		case <-turn.Ready:
		case <-time.After(sqsonce.OutcomeOf(err).After):
		}
	}
}

type holdsAll struct{}

func (holdsAll) Room(string) (held, holds bool) { return true, true }
func (holdsAll) InDebt() bool                   { return false }
