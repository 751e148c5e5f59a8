package sqlstore

// growStack makes room on a new goroutine's stack for a driver's calls, in one step. The stack would else be copied each
// time it doubles, deep inside those calls: that takes as long as half a statement. 16 KB, to which this comes, is the
// most that the runtime hands out without a lock.
//
//go:noinline
func growStack() byte {
	var frame [8 << 10]byte
	return middle(frame[:])
}

// middle keeps the compiler from leaving the frame out.
//
//go:noinline
func middle(b []byte) byte { return b[len(b)/2] }
