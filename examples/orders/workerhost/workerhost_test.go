package workerhost

import (
	"slices"
	"testing"
	"time"
)

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
