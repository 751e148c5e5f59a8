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

// FuzzEventIsChecked compares the check with the rules of the in-memory SQS, which were written from AWS's documentation
// without a look at ours: what passes here is sent, what is refused here is refused there.
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
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // else an answer that is taken for a passing fault is repeated for minutes
		defer cancel()
		_, err = p.Publish(ctx, fifo.Event{
			ID: id, Group: group, Body: body, Attributes: map[string]sqsonce.Attribute{name: a},
		})
		refused := fields(err)
		if err != nil && refused == nil {
			t.Fatalf("the check let pass what SQS refuses: %v", err)
		}
		for _, field := range refused {
			if field == "Event.ID" {
				return // empty or not legal text, which a body or value can hold no more than the ID's attribute
			}
		}
		_, err = x.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("raw"),
			MessageAttributes: map[string]sqstypes.MessageAttributeValue{name: wire},
		})
		if _, byServer := errors.AsType[smithy.APIError](err); refused != nil && err == nil && !stricter(body, name, typ, value) {
			t.Errorf("the check refuses %v, which SQS takes", refused)
		} else if err != nil && refused == nil {
			t.Errorf("SQS refuses what the check lets pass (by the server: %v): %v", byServer, err)
		}
	})
}

// stricter reports where the check refuses more than SQS: what the SDK would change on the way, and names of ours.
func stricter(body, name, typ, value string) bool {
	for _, s := range []string{body, name, typ, value} {
		if s != string([]rune(s)) { // not UTF-8: the SDK sends U+FFFD instead
			return true
		}
	}
	switch name {
	case "event-id", "event-source", "event-type", "event-key", "reject-reason":
		return true
	}
	return false
}
