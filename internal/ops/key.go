package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// recordKey returns the key of the event's record. Where something is missing that the consumer had, the key function is asked
// twice: a key that depends on it is that of another event.
func (d *DLQ) recordKey(m *Message) (string, error) {
	if key := d.copiedKey(m); key != "" {
		if !strings.HasPrefix(key, d.opts.Consumer+"#") {
			return "", fmt.Errorf("%w It is %q", errOtherConsumer, key)
		}
		return key, nil
	}
	key, err := d.callKey(m.Message)
	if !d.opts.S3 && !d.opts.NoS3 {
		if k, _ := d.callWith(m.Message, d.key(), true); k != key {
			return "", ErrS3
		}
	}
	if m.QueueARN == "" {
		other := m.Message
		other.QueueARN = d.arn
		if k, otherErr := d.callKey(other); k != key || (otherErr == nil) != (err == nil) {
			return "", ErrNoSource
		}
	}
	if d.fifo && m.Cause == CauseReceivesUsedUp {
		other := m.Message
		other.DedupID = ""
		if k, _ := d.callKey(other); err == nil && k != key {
			return "", errDedupIDLost
		}
	}
	return key, err
}

// copiedKey returns the key of the record that the host's copy names, because a key function made it, or "".
func (d *DLQ) copiedKey(m *Message) string {
	if d.opts.Consumer == "" || m.Cause != CauseRejected {
		return ""
	}
	return m.Attributes[sqsonce.AttrRecordKey].String
}

// callKey calls the user's key function, or the default one.
func (d *DLQ) callKey(m sqsonce.Message) (key string, err error) {
	return d.callWith(m, d.key(), d.opts.S3)
}

func (d *DLQ) key() func(*sqsonce.Message) (string, error) {
	if d.opts.Key == nil {
		return ownKey
	}
	return d.opts.Key
}

// ownKey is the default key function.
func ownKey(m *sqsonce.Message) (string, error) {
	key, _, err := m.Key()
	return key, err
}

// callWith calls a key function with the message as its consumer sees it, behind sqsonce.S3 or not.
func (d *DLQ) callWith(m sqsonce.Message, of func(*sqsonce.Message) (string, error), s3 bool) (key string, err error) {
	get := sqsonce.Handler(func(_ context.Context, m *sqsonce.Message) (err error) { key, err = of(m); return err })
	if s3 {
		get = sqsonce.S3(get)
	}
	if !d.opts.NoOpenEnvelope {
		get = sqsonce.OpenEnvelope(get)
	}
	if err := host.Contain(func() error { return get(context.Background(), &m) }); err != nil {
		return "", fmt.Errorf("the key of message %s: %w", m.ID, err)
	}
	if key == "" {
		return "", fmt.Errorf("the key of message %s: %w", m.ID, sqsonce.ErrNoEventID)
	}
	return key, nil
}
