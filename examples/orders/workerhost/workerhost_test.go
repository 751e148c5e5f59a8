package workerhost

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/sqsworker"
)

func TestSettings(t *testing.T) {
	for name, value := range map[string]string{"CONCURRENCY": "7", "VISIBILITY": "40s", "STOP_TIMEOUT": "110s"} {
		t.Setenv(name, value)
	}
	s, err := fromEnv()
	if err != nil {
		t.Fatal(err)
	}
	var o sqsworker.Options
	s.apply(&o)
	if o.Concurrency != 7 || o.VisibilityTimeout != 40*time.Second || o.StopTimeout != 110*time.Second {
		t.Errorf("concurrency %d, visibility %s, stop timeout %s; want 7, 40s and 110s", o.Concurrency, o.VisibilityTimeout, o.StopTimeout)
	}
	t.Setenv("STOP_TIMEOUT", "110")
	if _, err := fromEnv(); err == nil || !strings.Contains(err.Error(), "STOP_TIMEOUT") {
		t.Errorf("a duration without unit: %v, want an error that names STOP_TIMEOUT", err)
	}
}

func TestBackoff(t *testing.T) {
	t.Setenv("BACKOFF", "5s")
	s, err := fromEnv()
	if err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for _, try := range []int{1, 2, 3, 4, 1000} {
		got = append(got, s.doubling()(try))
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if (settings{}).doubling() != nil {
		t.Error("without BACKOFF: got a function, want the worker's default")
	}
}
