package sqsworker

import (
	"fmt"
	"strings"
	"testing"
)

// No message may be taken for another one that is done: it would be deleted without having been run.
func TestMemoryKeysAreDistinct(t *testing.T) {
	t.Parallel()
	const uuid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	seen := map[memoryKey]string{}
	for _, id := range []string{
		uuid, "0A1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f8", "f9e8d7c6-b5a4-9382-7160-5f4e3d2c1b0a",
		"0a1b2c3d4e5f-6071-8293-a4b5c6d7e8f90", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8fg", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f",
		"00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001", "0a1b2c3d04e5f060710829304b5c6d7e8f90", "a", "",
	} {
		key := keyOf(id)
		if other, taken := seen[key]; taken {
			t.Errorf("%q and %q have one key", id, other)
		}
		seen[key] = id
	}
	if got := fmt.Sprintf("%x", keyOf(uuid)); got != strings.ReplaceAll(uuid, "-", "") {
		t.Errorf("the key of a UUID is %s", got)
	}
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	t.Parallel()
	id := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }
	var m memory
	for i := range memorySize + 5 {
		m.add(id(i), i%2 == 0)
	}
	for i, want := range map[int]bool{0: false, 4: false, 5: true, memorySize + 4: true} {
		if got := m.has(id(i)); got != want {
			t.Errorf("has the message before the last %d: got %t, want %t", memorySize+4-i, got, want)
		}
	}
	if m.undeleted(id(5)) || !m.undeleted(id(6)) {
		t.Error("does not know which deletes were confirmed")
	}
	if !m.add(id(6), false) || m.add(id(6), false) {
		t.Error("does not say whether the delete had been confirmed before")
	}
	if m.undeleted(id(6)) || len(m.ids) != memorySize {
		t.Errorf("after the delete: undeleted %t, %d IDs, want %d", m.undeleted(id(6)), len(m.ids), memorySize)
	}
}
