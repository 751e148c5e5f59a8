package deadletter

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// smallQueue is a queue with a limit for the size of a message, body and attributes.
type smallQueue struct {
	most  int
	err   error // of all calls
	calls []*sqs.SendMessageInput
}

func (q *smallQueue) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	sent := *in
	sent.MessageAttributes = maps.Clone(in.MessageAttributes)
	q.calls = append(q.calls, &sent)
	n := len(*in.MessageBody)
	for name, a := range in.MessageAttributes {
		n += len(name) + len(*a.DataType) + len(*a.StringValue)
	}
	switch {
	case q.err != nil:
		return nil, q.err
	case n > q.most:
		return nil, &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.InvalidParameterValue",
			Message: "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."}
	}
	return confirmed(in), nil
}

// confirmed is what SQS answers to a message that it has accepted.
func confirmed(in *sqs.SendMessageInput) *sqs.SendMessageOutput {
	sum := md5.Sum([]byte(*in.MessageBody))
	return &sqs.SendMessageOutput{MessageId: aws.String("copy"), MD5OfMessageBody: aws.String(hex.EncodeToString(sum[:]))}
}

// answering is a dead-letter queue whose answers are changed on the way.
type answering struct {
	change func(*sqs.SendMessageOutput) *sqs.SendMessageOutput
}

func (q answering) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return q.change(confirmed(in)), nil
}

// A success that does not name the message confirms nothing: the host deletes what is confirmed.
func TestSuccessThatConfirmsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sqs.SendMessageOutput) *sqs.SendMessageOutput{
		"nil":           func(*sqs.SendMessageOutput) *sqs.SendMessageOutput { return nil },
		"empty":         func(*sqs.SendMessageOutput) *sqs.SendMessageOutput { return &sqs.SendMessageOutput{} },
		"no ID":         func(o *sqs.SendMessageOutput) *sqs.SendMessageOutput { o.MessageId = nil; return o },
		"empty ID":      func(o *sqs.SendMessageOutput) *sqs.SendMessageOutput { o.MessageId = aws.String(""); return o },
		"no checksum":   func(o *sqs.SendMessageOutput) *sqs.SendMessageOutput { o.MD5OfMessageBody = nil; return o },
		"that of other": func(o *sqs.SendMessageOutput) *sqs.SendMessageOutput { o.MD5OfMessageBody = aws.String("0"); return o },
		"":              func(o *sqs.SendMessageOutput) *sqs.SendMessageOutput { return o },
	} {
		m := &sqsonce.Message{ID: "id-1", Body: "body", QueueARN: sourceARN}
		_, err := Send(t.Context(), answering{change}, "https://sqs.us-east-1.amazonaws.com/1/dlq", m, "", "", nil)
		if (err == nil) != (name == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSendFitsASmallerQueue: a copy that is refused for its size is sent without the host's attributes; the source is left
// out first, then the reason.
func TestSendFitsASmallerQueue(t *testing.T) {
	t.Parallel()
	const own = 300 // bytes, more than key, reason and source together
	for _, tt := range []struct {
		name     string
		most     int
		attrs    map[string]sqsonce.Attribute
		record   string // its key, of a function
		want     map[string]string
		dropped  []string
		calls    int
		tooLarge bool
	}{
		{name: "all fits", most: 1000 + own, calls: 1, want: map[string]string{
			sqsonce.AttrEventKey:         "String:sqs-message|" + sourceARN + "|id-1",
			sqsonce.AttrRejectReason:     "String:bad order",
			sqsonce.AttrDeadLetterSource: "String:" + sourceARN,
		}},
		{name: "all fits, with the record's key", record: "c#1", most: 1000 + own, calls: 1, want: map[string]string{
			sqsonce.AttrEventKey: "String:sqs-message|" + sourceARN + "|id-1", sqsonce.AttrRejectReason: "String:bad order",
			sqsonce.AttrDeadLetterSource: "String:" + sourceARN, sqsonce.AttrRecordKey: "String:c#1",
		}},
		{name: "no space for the record's key", record: strings.Repeat("k", own), most: 1000 + own, calls: 2, want: map[string]string{
			sqsonce.AttrEventKey: "String:sqs-message|" + sourceARN + "|id-1", sqsonce.AttrRejectReason: "String:bad order",
			sqsonce.AttrDeadLetterSource: "String:" + sourceARN,
		}},
		{name: "a record's key that SQS does not accept", record: "c#\x01", most: 1000 + own, calls: 1,
			attrs: map[string]sqsonce.Attribute{sqsonce.AttrRecordKey: {Type: "String", String: "the sender's"}}, want: map[string]string{
				sqsonce.AttrEventKey: "String:sqs-message|" + sourceARN + "|id-1", sqsonce.AttrRejectReason: "String:bad order",
				sqsonce.AttrDeadLetterSource: "String:" + sourceARN,
			}},
		{name: "no space for the source", most: 1000 + 130, calls: 2, want: map[string]string{
			sqsonce.AttrEventKey:     "String:sqs-message|" + sourceARN + "|id-1",
			sqsonce.AttrRejectReason: "String:bad order",
		}},
		{name: "no space for the reason", most: 1000 + 90, calls: 3, dropped: []string{sqsonce.AttrRejectReason}, want: map[string]string{
			sqsonce.AttrEventKey: "String:sqs-message|" + sourceARN + "|id-1",
		}},
		{name: "no space for either", most: 1000, calls: 4, dropped: []string{sqsonce.AttrRejectReason, sqsonce.AttrEventKey}, want: map[string]string{}},
		{name: "no space for the message", most: 999, calls: 4, dropped: []string{sqsonce.AttrRejectReason, sqsonce.AttrEventKey}, tooLarge: true},
		{name: "the reason of an earlier rejection", most: 1000 + 20 + 80, calls: 3, dropped: []string{sqsonce.AttrRejectReason},
			attrs: map[string]sqsonce.Attribute{
				sqsonce.AttrRejectReason: {Type: "String", String: "x"},
				sqsonce.AttrEventKey:     {Type: "String", String: strings.Repeat("k", 60)},
			}, want: map[string]string{
				sqsonce.AttrRejectReason: "String:x", sqsonce.AttrEventKey: "String:" + strings.Repeat("k", 60),
			}},
		{name: "the sender's attributes are never dropped", most: 1000, calls: 3, dropped: []string{sqsonce.AttrRejectReason},
			attrs: map[string]sqsonce.Attribute{sqsonce.AttrEventKey: {Type: "String", String: "orders|1"}}, tooLarge: true},
	} {
		m := message()
		m.Body, m.Attributes = strings.Repeat("x", 1000), tt.attrs
		q := &smallQueue{most: tt.most}
		dropped, err := Send(t.Context(), q, standardDLQ, m, keyOf(t, m), tt.record, errBad)
		if IsTooLarge(err) != tt.tooLarge || (err == nil) == tt.tooLarge || len(q.calls) != tt.calls || !slices.Equal(dropped, tt.dropped) {
			t.Errorf("%s: got %d calls, dropped %v, error %v; want %d, %v", tt.name, len(q.calls), dropped, err, tt.calls, tt.dropped)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(tt.want, texts(q.calls[len(q.calls)-1].MessageAttributes)); diff != "" {
			t.Errorf("%s: attributes (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestSendOnceForOtherErrors: only after a refusal for the size a smaller message can succeed.
func TestSendOnceForOtherErrors(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		errors.New("connection reset: message must be shorter than"),
		&smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "no such group"},
		&smithy.GenericAPIError{Code: "AccessDenied", Message: "shorter than"},
	} {
		q := &smallQueue{err: err}
		if dropped, got := Send(t.Context(), q, standardDLQ, message(), "", "", errBad); got != err || len(q.calls) != 1 || dropped != nil {
			t.Errorf("%v: got %d calls, dropped %v, error %v", err, len(q.calls), dropped, got)
		}
	}
}

// A queue for smaller messages: the source is left out before trace context, that before the reason, and the reason before the
// key.
func TestSendToASmallQueueLeavesOutTraceContext(t *testing.T) {
	t.Parallel()
	m := message()
	m.Attributes = map[string]sqsonce.Attribute{"traceparent": {Type: "String", String: parent}, "tracestate": {Type: "String", String: "a=b"}}
	q := &smallQueue{most: 130}
	dropped, err := Send(t.Context(), q, standardDLQ, m, keyOf(t, m), "", errBad)
	if err != nil || dropped != nil || len(q.calls) != 4 {
		t.Fatalf("dropped %v in %d calls, %v, want nothing in 4", dropped, len(q.calls), err)
	}
	if second := q.calls[1].MessageAttributes; len(second) != 4 || second["tracestate"].StringValue == nil {
		t.Errorf("the second call has %v, want all but the source", second)
	}
	last := q.calls[3]
	if len(last.MessageAttributes) != 2 || last.MessageAttributes[sqsonce.AttrRejectReason].StringValue == nil || last.MessageSystemAttributes == nil {
		t.Errorf("sent %v with system attributes %v", last.MessageAttributes, last.MessageSystemAttributes)
	}
}

// An error from before the request says nothing about the message's size: nothing is left out of the copy because of it.
func TestFailedCredentialsLeaveNothingOut(t *testing.T) {
	t.Parallel()
	fetches := 0
	c := sqs.New(sqs.Options{
		Region: "us-east-1", Retryer: aws.NopRetryer{}, APIOptions: []func(*middleware.Stack) error{sdkhttp.Evidence},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			fetches++
			return aws.Credentials{}, &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "the token must be shorter than 20000"}
		}),
	})
	m := &sqsonce.Message{ID: "m", Body: "{}"}
	if dropped, err := Send(t.Context(), c, "https://sqs.us-east-1.amazonaws.com/123456789012/dlq", m, "key", "", errors.New("reason")); err == nil || len(dropped) > 0 || fetches != 1 {
		t.Errorf("got %v, dropped %v, %d sends; want one, which fails", err, dropped, fetches)
	}
}
