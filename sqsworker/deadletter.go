package sqsworker

import (
	"context"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
)

// sendToDeadLetter sends a copy of the message with the reason. The SDK's own retries may send it twice: rather two
// copies than none.
func (l *loop) sendToDeadLetter(ctx context.Context, m *sqsonce.Message, reason error) error {
	in, dropped := deadletter.Copy(l.queue.deadLetter, m, reason)
	for _, name := range dropped {
		l.log.Warn("sqsworker: no room for an attribute of the dead-lettered message", keyMessage, m.ID, "attribute", name)
	}
	_, err := l.client.SendMessage(ctx, in)
	return err
}
