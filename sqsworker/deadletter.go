package sqsworker

import (
	"context"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/deadletter"
)

// sendToDeadLetter sends a copy of the message with the reason.
func (l *loop) sendToDeadLetter(ctx context.Context, m *sqsonce.Message, reason error) error {
	dropped, err := deadletter.Send(ctx, l.client, l.queue.deadLetter, m, reason)
	for _, name := range dropped {
		l.log.Warn("sqsworker: no room for an attribute of the dead-lettered message", keyMessage, m.ID, keyAttribute, name)
	}
	return err
}
