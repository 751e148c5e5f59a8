package limit

import (
	"context"
	"testing"

	"github.com/sqsonce/sqsonce/internal/settle"
)

// A message that its rules let through at once.
func BenchmarkDo(b *testing.B) {
	l, err := New([]Rule{{Name: "r", Key: All, Plan: Plan{Rate: Rate{N: 1_000_000_000}}}, {Name: "tenant", Plan: Plan{Concurrency: 100}}})
	if err != nil {
		b.Fatal(err)
	}
	m := message("a", 1)
	ctx, _ := settle.New(context.Background())
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Do(ctx, m, func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
