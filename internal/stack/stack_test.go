package stack_test

import (
	"testing"

	"github.com/sqsonce/sqsonce/internal/stack"
)

// On the heap the room would make the stack no larger.
func TestGrow(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { stack.Grow() }); n != 0 {
		t.Errorf("Grow: got %v allocations, want none", n)
	}
}

// BenchmarkGrow is a call with the stack of the SDK's, on a new goroutine.
func BenchmarkGrow(b *testing.B) {
	done := make(chan byte)
	b.Run("grown", func(b *testing.B) {
		for b.Loop() {
			go func() {
				stack.Grow()
				done <- deep(55)
			}()
			<-done
		}
	})
	b.Run("as it is", func(b *testing.B) {
		for b.Loop() {
			go func() { done <- deep(55) }()
			<-done
		}
	})
}

//go:noinline
func deep(n int) byte {
	var frame [400]byte
	if n > 0 {
		frame[n] = deep(n - 1)
	}
	return frame[n]
}
