package doctor

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// probes returns the findings of I3.
func (a *account) probes() []Finding {
	a.deployment.Probe = true
	return slices.DeleteFunc(a.all(), func(f Finding) bool { return f.ID != "I3" })
}

var probed = []string{"sqs:DeleteMessage on queue orders", "sqs:ChangeMessageVisibility on queue orders", "dynamodb:UpdateItem on table dedup", "dynamodb:PartiQLUpdate on table dedup", "dynamodb:GetItem on table dedup"}

// A probe changes nothing: not the messages in flight, not the records, not the items.
func TestProbeChangesNothing(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.send("orders", "visible")
	a.send("orders", "in flight")
	if _, err := a.stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &a.deployment.QueueURL, VisibilityTimeout: 600}); err != nil {
		t.Fatal(err)
	}
	before := a.stack.MemSQS().Messages("orders")
	called, written := len(a.stack.MemSQS().Calls()), len(a.stack.MemDynamoDB().Calls())
	found := a.probes()
	for i, f := range found {
		switch {
		case i < len(probed):
			if f.Verdict != OK || f.Text != "the caller has "+probed[i] {
				t.Error(f)
			}
		case f.Verdict != Skip || !strings.Contains(f.Text, "not probed"):
			t.Error(f)
		}
	}
	if len(found) != len(probed)+2 {
		t.Errorf("%d findings", len(found))
	}
	if after := a.stack.MemSQS().Messages("orders"); !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if items := a.stack.MemDynamoDB().Items("dedup"); len(items) > 0 {
		t.Errorf("%s", items)
	}
	ops := func(calls []fault.Call) (changing []string) {
		for _, c := range calls {
			if !strings.HasPrefix(c.Op, "Get") && !strings.HasPrefix(c.Op, "Describe") && !strings.HasPrefix(c.Op, "List") {
				changing = append(changing, c.Op)
			}
		}
		return changing
	}
	if got := ops(a.stack.MemSQS().Calls()[called:]); !slices.Equal(got, []string{"DeleteMessage", "ChangeMessageVisibility"}) {
		t.Error(got)
	}
	if got := ops(a.stack.MemDynamoDB().Calls()[written:]); !slices.Equal(got, []string{"UpdateItem", "ExecuteStatement"}) {
		t.Error(got)
	}
}

// Without --probe nothing is called that could change anything.
func TestNoProbe(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.well()
	for _, f := range []*fake{a.sqs, a.dynamodb, a.iam, a.sts, a.lambda, a.cloudwatch} {
		for _, op := range f.calls {
			if !strings.HasPrefix(op, "Get") && !strings.HasPrefix(op, "Describe") && !strings.HasPrefix(op, "List") && !strings.HasPrefix(op, "Simulate") && !strings.HasPrefix(op, "Put") {
				t.Error(op)
			}
		}
	}
}

func TestProbeVerdicts(t *testing.T) {
	t.Parallel()
	for i, op := range []string{"DeleteMessage", "ChangeMessageVisibility", "UpdateItem", "ExecuteStatement", "GetItem"} {
		of := func(a *account) *fake {
			if i < 2 {
				return a.sqs
			}
			return a.dynamodb
		}
		a := healthy(t, "orders")
		of(a).deny(op)
		for j, f := range a.probes()[:len(probed)] {
			if want := map[bool]Verdict{true: Fail, false: OK}[i == j]; f.Verdict != want || !strings.Contains(f.Text, probed[j]) || (f.Fix != "") != (i == j) {
				t.Errorf("%s is denied: %s", op, f)
			}
		}
		a = healthy(t, "orders")
		of(a).set(op, func(any) (any, error) {
			return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: "odd"}
		})
		if f := a.probes()[i]; f.Verdict != Skip || !strings.Contains(f.Text, "ValidationException: odd") {
			t.Error(f)
		}
	}
}

// A service that takes a receipt handle, or a condition, that cannot be shows nothing about permissions.
func TestProbeAnsweredByNothing(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	answer(a.sqs, func(*sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
		return &sqs.DeleteMessageOutput{}, nil
	})
	answer(a.dynamodb, func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		if aws.ToString(in.ConditionExpression) == "" {
			t.Error("no condition")
		}
		return &dynamodb.UpdateItemOutput{}, nil
	})
	found := a.probes()
	for _, i := range []int{0, 2} {
		if found[i].Verdict != Skip || !strings.Contains(found[i].Text, "cannot succeed") {
			t.Error(found[i])
		}
	}
}
