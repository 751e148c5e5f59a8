// Package process is for tests whose processes die: they are processes of the test binary, which the test kills, stops and
// terminates, and which kill themselves at points of their own code.
package process

import (
	"io"
	"os"
	"strconv"
	"sync/atomic"
)

// Doom is where a process kills itself: at its Nth visit to Point. The zero value is nowhere.
type Doom struct {
	Point string
	Nth   int
}

// The environment variables of a process with a Doom.
const (
	envPoint = "PROOF_POINT"
	envNth   = "PROOF_NTH"
)

var visits atomic.Int64 // to the point of this process

// At kills this process, if it is its time.
func At(point string) {
	if point != os.Getenv(envPoint) || strconv.FormatInt(visits.Add(1), 10) != os.Getenv(envNth) {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// EndWithParent ends this process when its standard input ends: with its parent.
func EndWithParent() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
