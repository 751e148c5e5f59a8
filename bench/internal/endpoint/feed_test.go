package endpoint

import "testing"

func TestEvents(t *testing.T) {
	t.Parallel()
	s := &server{cfg: Config{Events: 100, Resend: 20}}
	seen := map[int]int{}
	for _, n := range s.events() {
		seen[n]++
	}
	twice := 0
	for n := range 100 {
		if seen[n] == 0 {
			t.Errorf("event %d is not sent", n)
		}
		if seen[n] == 2 {
			twice++
		}
	}
	if twice != 3 { // 0, 20 and 40
		t.Errorf("%d events are sent twice, want 3", twice)
	}
	if b := batchSize(64 << 10); b != 10 {
		t.Errorf("batches of %d messages of 64 KB, want 10", b)
	}
	if b := batchSize(512 << 10); b != 1 {
		t.Errorf("batches of %d messages of 512 KB, want 1", b)
	}
}
