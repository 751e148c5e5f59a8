package sqloutbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/fifo/outbox"
)

// BenchmarkBacklog is what a relay's statements cost where 10^6 events wait in 1,000 groups, of which one has half, and the
// same beside 5,000 halted groups.
func BenchmarkBacklog(b *testing.B) {
	for _, kind := range sqlbed.Names {
		b.Run(kind, func(b *testing.B) {
			bed := newBed(b, kind)
			backlog(b, bed, 1_000_000, 1000)
			o := bed.outbox(b)
			if err := o.Check(b.Context()); err != nil {
				b.Fatal(err)
			}
			bench := func(name string) {
				for _, limit := range []int{64, 256, 1000} {
					b.Run(fmt.Sprintf("%sgroups/limit=%d", name, limit), func(b *testing.B) {
						timed(b, func() error {
							found, _, err := o.Groups(b.Context(), "", limit)
							if err == nil && len(found) != limit {
								err = fmt.Errorf("%d groups, want %d", len(found), limit)
							}
							return err
						})
					})
				}
				for _, group := range []string{"g000000", "g000007"} {
					b.Run(name+"read/"+group, func(b *testing.B) {
						timed(b, func() error {
							es, err := o.Read(b.Context(), outbox.Group{Name: group}, outbox.Known{}, 10)
							if err == nil && len(es) != 10 {
								err = fmt.Errorf("%d events, want 10", len(es))
							}
							return err
						})
					})
				}
				b.Run(name+"claim", func(b *testing.B) {
					timed(b, func() error {
						groups := []string{"g000000"}
						got, err := o.Claim(b.Context(), groups, time.Minute)
						if err == nil && len(got) != 1 {
							err = fmt.Errorf("%d groups claimed", len(got))
						}
						if err == nil {
							err = o.Unclaim(b.Context(), groups)
						}
						return err
					})
				})
			}
			bench("")
			// Halted groups before all others in the order of the names.
			bed.exec(b, "INSERT INTO {outbox} (aggregatetype, aggregateid, id, source, type, payload, attributes, trace, created_at, parked)"+
				" SELECT aggregatetype, CONCAT('a', seq), id, source, type, payload, attributes, trace, created_at, 'HALT' FROM {outbox} ORDER BY seq LIMIT 5000")
			bench("halted/")
		})
	}
}

// timed reports how long f takes.
func timed(b *testing.B, f func() error) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
