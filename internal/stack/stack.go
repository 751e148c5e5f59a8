// Package stack makes room on a goroutine's stack.
package stack

// room is enough for a call of the AWS SDK, whose middleware is some sixty calls deep.
const room = 20 << 10

// Grow makes room on the goroutine's stack for a call of the AWS SDK. The runtime grows a stack when a function is entered whose frame
// does not fit, and copies it frame by frame: for a new goroutine several times deep within the SDK, which takes a tenth of the CPU of the
// call. Here there is next to nothing to copy.
//
//go:noinline
func Grow() {
	if used {
		var frame [room]byte
		used = frame[last] == 0
	}
}

// The compiler knows neither, so that it keeps the frame. It is never used, because that would clear it.
var (
	used bool
	last = room - 1
)
