package queues

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
)

// answering is a client whose queues have these attributes: visible, in flight, delayed, retention, redrive policy.
func answering(values ...string) *sqs.Client {
	answer := func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		attributes := map[string]string{}
		for i, name := range in.Parameters.(*sqs.GetQueueAttributesInput).AttributeNames {
			if values[i] != "" {
				attributes[string(name)] = values[i]
			}
		}
		out.Result = &sqs.GetQueueAttributesOutput{Attributes: attributes}
		return out, m, nil
	}
	return sqs.New(sqs.Options{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("answer", answer), middleware.Before)
	}}})
}

// What SQS does not say in numbers is an error, and no zero.
func TestRead(t *testing.T) {
	const policy = `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:1:dead","maxReceiveCount":"5"}`
	for _, test := range []struct {
		values []string
		counts Counts
		dlq    string
		says   string
	}{
		{values: []string{"3", "2", "1", "60", ""}, counts: Counts{3, 2, 1, time.Minute}},
		{values: []string{"3", "2", "1", "60", policy}, counts: Counts{3, 2, 1, time.Minute}, dlq: "arn:aws:sqs:us-east-1:1:dead"},
		{values: []string{"", "2", "1", "60", ""}, says: `ApproximateNumberOfMessages is ""`},
		{values: []string{"3", "-2", "1", "60", ""}, says: `NotVisible is "-2"`},
		{values: []string{"3", "2", "many", "60", ""}, says: `Delayed is "many"`},
		{values: []string{"3", "2", "1", "60", "{"}, says: "JSON"},
		{values: []string{"3", "2", "1", "", ""}, says: `MessageRetentionPeriod is ""`},
	} {
		counts, dlq, err := Read(t.Context(), answering(test.values...), "https://sqs.us-east-1.amazonaws.com/1/orders")
		if counts != test.counts || dlq != test.dlq || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, %q, %v", test.values, counts, dlq, err)
		}
	}
	if c := (Counts{3, 2, 1, time.Hour}); c.Total() != 6 {
		t.Error(c.Total())
	}
}
