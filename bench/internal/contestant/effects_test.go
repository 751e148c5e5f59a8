package contestant

import (
	"testing"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

func TestEffects(t *testing.T) {
	t.Parallel()
	e := NewEffects(4)
	for _, body := range []string{job.Body(1, 0), job.Body(2, 0), job.Body(2, 0), job.Body(9, 0), "nonsense"} {
		e.Handle(body, 0)
	}
	var u job.Usage
	e.Report(&u)
	if u.Doubled != 1 {
		t.Errorf("%d events doubled, want 1", u.Doubled)
	}
	for n, want := range []bool{false, true, true, false} {
		if got := u.Done.Has(n); got != want {
			t.Errorf("event %d done: %v, want %v", n, got, want)
		}
	}
}
