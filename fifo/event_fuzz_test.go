package fifo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// FuzzEventIsChecked compares the check with the in-memory SQS, whose rules were written independently from AWS's
// documentation: SQS accepts an event that passes the check, and refuses one that does not.
func FuzzEventIsChecked(f *testing.F) {
	f.Add("1", "g", "body", "name", "String", "value")
	f.Add("a b", "g h", "\x00", "aws.x", "Number", "1e5")
	f.Add("é", "~", "\ufffd", "a..b", "Number.x", "nan")
	f.Add("\u2028", "!", "\ufffe", ".a", "Binary", "\xff")
	f.Add("\xff", "", "\xed\xa0\x80", "", "String.", "")
	f.Fuzz(func(t *testing.T, id, group, body, name, typ, value string) {
		srv := memsqs.New()
		defer srv.Close()
		x := &fixture{T: t, srv: srv, sqs: newClient(srv)}
		url := x.create(orders, nil)
		p, err := fifo.NewPublisher(x.sqs, url, "orders", func(o *fifo.Options) { o.Linger = -1 })
		if err != nil {
			t.Fatal(err)
		}
		a := sqsonce.Attribute{Type: typ, String: value}
		wire := sqstypes.MessageAttributeValue{DataType: &typ, StringValue: &value}
		if typ == "Binary" {
			a = sqsonce.Attribute{Type: typ, Binary: []byte(value)}
			wire = sqstypes.MessageAttributeValue{DataType: &typ, BinaryValue: []byte(value)}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // else a failure that looks transient would be repeated for minutes
		defer cancel()
		_, err = p.Publish(ctx, fifo.Event{
			ID: id, Group: group, Body: body, Attributes: map[string]sqsonce.Attribute{name: a},
		})
		refused := fields(err)
		if err != nil && refused == nil {
			t.Fatalf("SQS refuses an event that passes the check: %v", err)
		}
		for _, field := range refused {
			if field == "Event.ID" {
				return // empty or not legal text: a body or an attribute value cannot have it either
			}
		}
		_, err = x.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("raw"),
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{name: wire},
		})
		if _, byServer := errors.AsType[smithy.APIError](err); refused != nil && err == nil && !stricter(body, name, typ, value) {
			t.Errorf("the check refuses %v, and SQS accepts it", refused)
		} else if err != nil && refused == nil {
			t.Errorf("SQS refuses an event that passes the check (by the server: %v): %v", byServer, err)
		}
	})
}

// stricter reports whether the check refuses more than SQS: text that the SDK would change, and reserved names.
func stricter(body, name, typ, value string) bool {
	for _, s := range []string{body, name, typ, value} {
		if s != string([]rune(s)) { // not UTF-8: the SDK sends U+FFFD instead
			return true
		}
	}
	switch name {
	case "event-id", "event-source", "event-type", "event-key", "reject-reason", "dead-letter-source":
		return true
	}
	return false
}
