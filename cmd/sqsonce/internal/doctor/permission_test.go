package doctor

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Each action that the role lacks is found by name, and the fix gives it.
func TestRole(t *testing.T) {
	t.Parallel()
	for action, test := range map[string]struct {
		on      string
		verdict Verdict
	}{
		"sqs:ReceiveMessage":          {"queue orders", Fail},
		"sqs:DeleteMessage":           {"queue orders", Fail},
		"sqs:ChangeMessageVisibility": {"queue orders", Fail},
		"sqs:GetQueueAttributes":      {"queue orders", Fail},
		"sqs:SendMessage":             {"queue orders-dlq", Fail},
		"dynamodb:UpdateItem":         {"table dedup", Fail},
		"dynamodb:GetItem":            {"table dedup", Warn},
		"dynamodb:PartiQLInsert":      {"table dedup", Warn},
		"dynamodb:PartiQLUpdate":      {"table dedup", Warn},
	} {
		run(t, action, func(a *account) {
			a.role.without(action)
			f := a.only("I2", test.verdict)
			if !strings.HasPrefix(f.Text, "role billing lacks "+action+" on "+test.on+",") || strings.Count(f.Fix, ":") != strings.Count(queueARN("orders"), ":")+6 {
				a.Errorf("%s\n%s", f, f.Fix)
			}
			a.paste(f.Fix)
			a.well()
		})
	}
}

// A second fix does not take back what the first one has given.
func TestRoleTwice(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.role.without("sqs:SendMessage")
	a.paste(a.only("I2", Fail).Fix)
	a.role.without("sqs:DeleteMessage", "dynamodb:GetItem")
	f := a.only("I2", Fail)
	if !strings.Contains(f.Text, "lacks sqs:DeleteMessage on queue orders, dynamodb:GetItem on table dedup,") {
		t.Error(f)
	}
	a.paste(f.Fix)
	a.well()
}

// What is not known of the deployment is not taken for granted.
func TestRoleUnseen(t *testing.T) {
	t.Parallel()
	a := healthy(t, "orders")
	a.dynamodb.deny("DescribeTable")
	a.says("I2", Unknown, "dynamodb:DescribeTable is denied")
	a.role.without("sqs:SendMessage")
	a.says("I2", Fail, "not all was seen: dynamodb:DescribeTable is denied")
	a.deployment = Deployment{Role: roleARN}
	a.says("I2", Unknown, "depends on --queue and --table")
	a = healthy(t, "orders")
	alter(a.sqs, func(o *sqs.GetQueueAttributesOutput) { o.Attributes["RedrivePolicy"] = "none" })
	a.says("I2", Unknown, "the redrive policy of orders cannot be read")
	alter(a.sqs, func(o *sqs.GetQueueAttributesOutput) { delete(o.Attributes, "RedrivePolicy") }) // Q2 has that
	a.says("I2", OK, "the 8 actions")
	a = healthy(t, "orders")
	a.lambda.deny("GetFunctionConfiguration")
	a.says("I2", Unknown, "lambda:GetFunctionConfiguration is denied")
}

// The actions are those that the guides of the hosts and the stores name, but for sqs:GetQueueUrl, which has a substitute.
func TestActionsOfDocs(t *testing.T) {
	t.Parallel()
	var text []byte
	for _, page := range []string{"worker", "lambda", "stores"} {
		_, table, _ := bytes.Cut(must.Get(os.ReadFile("../../../../docs/"+page+".md"))(t), []byte("\n## Permissions\n"))
		text = append(text, table...)
	}
	named := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (?:the queue|the dead-letter queue|DynamoDB) \|([^|]*)\|`).FindAllSubmatch(text, -1) {
		service := ""
		for _, action := range regexp.MustCompile("`([a-z]+:)?([A-Za-z]+)`").FindAllSubmatch(row[1], -1) {
			if len(action[1]) > 0 {
				service = string(action[1])
			}
			named[service+string(action[2])] = true
		}
	}
	delete(named, "sqs:GetQueueUrl")
	all := slices.Concat(queueActions, deadLetterActions, recordActions, batchActions)
	for _, action := range all {
		if !named[action] {
			t.Errorf("no guide names %s", action)
		}
	}
	if len(named) != len(all) {
		t.Errorf("the guides name %v, checked are %v", named, all)
	}
}

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
	must.Get(a.stack.SQS.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &a.deployment.QueueURL, VisibilityTimeout: 600}))(t)
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
		if f := a.probes()[i]; f.Verdict != Unknown || !strings.Contains(f.Text, "ValidationException: odd") {
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
		if found[i].Verdict != Unknown || !strings.Contains(found[i].Text, "cannot succeed") {
			t.Error(found[i])
		}
	}
}
