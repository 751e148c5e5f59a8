package runtimeapi

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"
)

// maxPayload is the limit of events and responses: the 6 MB of a synchronous invocation.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const maxPayload = 6 << 20

// errNotDelivered: the process ended before it asked for the invocation.
var errNotDelivered = errors.New("runtimeapi: not delivered")

// invocation is one event on its way: given to a process, delivered when the process asks for it, answered, and ended
// when the process asks for the next one or exits. Function.mu guards it until ended is closed.
type invocation struct {
	id        string
	event     []byte
	delivered bool
	answered  bool
	timer     *time.Timer // of the timeout, once delivered
	response  []byte
	err       error
	ended     chan struct{}
}

func newInvocation(event []byte) *invocation {
	return &invocation{id: requestID(), event: event, ended: make(chan struct{})}
}

func (i *invocation) answerLocked(response []byte, err error) {
	i.answered, i.response, i.err = true, response, err
}

func (i *invocation) endLocked() {
	if i.timer != nil {
		i.timer.Stop()
	}
	close(i.ended)
}

// requestID returns a random UUID.
func requestID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails: it ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
