package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

// outputsTemplate is a stack with outputs like those of template.yaml. moto has no SAM: the test creates the stack itself.
const outputsTemplate = `{
	"Resources": {"Q": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "NAME"}}},
	"Outputs": {"OrdersQueueUrl": {"Value": {"Ref": "Q"}}, "LedgerTableName": {"Value": {"Fn::Sub": "${AWS::StackName}-LedgerTable-X"}}}
}`

// SAM gets a stack, a bucket and tags of the run, no retention, no configuration of the user's, and credentials of the account.
// Not parallel: it sets the environment.
func TestDeploy(t *testing.T) {
	f := motoOnly(t)
	for _, v := range f.env {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "SQSONCE_AWS_") {
			t.Setenv(name, value)
		}
	}
	a, err := account.Open(t.Context(), account.NewPrefix())
	ok(t, err)
	prefix := a.Guard.Prefix
	t.Cleanup(func() { ok(t, clean(context.Background(), a, &bytes.Buffer{}, 1)) })
	t.Setenv("AWS_PROFILE", "another")
	t.Setenv("AWS_SESSION_TOKEN", "of-another")

	dir := t.TempDir()
	sam := filepath.Join(dir, "sam")
	ok(t, os.WriteFile(sam, []byte("#!/bin/sh\n{ echo \"$@\"; env; } >>"+dir+"/calls\n"), 0o755))
	r := &runner{account: a, dir: dir}
	f.stack(t, prefix+"demo", strings.Replace(outputsTemplate, "NAME", prefix+"demo-orders", 1))
	file, err := r.deploy(t.Context(), sam)
	ok(t, err)

	text, err := os.ReadFile(filepath.Join(dir, "calls"))
	ok(t, err)
	calls := string(text)
	for _, want := range []string{
		"build --template ../../../template.yaml", "--stack-name " + prefix + "demo ", "--s3-bucket " + prefix + "artifacts ",
		"--parameter-overrides Keep=false ", "--tags sqsonce-aws=" + prefix + " ", "--region us-east-1 ", "--config-file " + dir,
		"AWS_ACCESS_KEY_ID=" + number + "\n", "AWS_CONFIG_FILE=" + os.DevNull + "\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("SAM was called without %q:\n%s", want, calls)
		}
	}
	for _, never := range []string{"--resolve-s3", "--guided", "AWS_PROFILE", "of-another"} {
		if strings.Contains(calls, never) {
			t.Errorf("SAM was called with %q", never)
		}
	}
	bucket := prefix + "artifacts"
	tags, err := f.s3.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: &bucket})
	if err != nil || len(tags.TagSet) != 1 || *tags.TagSet[0].Value != prefix {
		t.Errorf("tags of the bucket: %v, error %v", tags, err)
	}
	var outputs map[string]string
	text, err = os.ReadFile(file)
	ok(t, err)
	ok(t, json.Unmarshal(text, &outputs))
	if !strings.HasSuffix(outputs["OrdersQueueUrl"], "/"+prefix+"demo-orders") || outputs["LedgerTableName"] != prefix+"demo-LedgerTable-X" {
		t.Errorf("outputs %v", outputs)
	}

	f.stack(t, prefix+"other", strings.Replace(outputsTemplate, "NAME", "foreign-output", 1))
	if _, err := r.writeOutputs(t.Context(), prefix+"other"); err == nil || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("a stack whose queue is not the run's: error %v", err)
	}
}

// Without SAM a run with the demo says what to install before anything is sent: there is no account here to open.
func TestNoSAM(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv(account.NumberVariable, "")
	t.Setenv("SAM", filepath.Join(t.TempDir(), "none"))
	for parts, want := range map[string]string{"sqs,demo": "install aws-sam-cli", "sqs": account.NumberVariable} {
		if err := (options{parts: parts}).run(t.Context(), strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v", parts, err)
		}
	}
}

// The policy of docs/aws.md allows the operations of the guard, and only on names with the prefix what is not a list.
func TestPolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs/aws.md"))
	ok(t, err)
	_, rest, _ := strings.Cut(string(text), "```json\n")
	block, _, _ := strings.Cut(rest, "```")
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
			Condition        map[string]map[string]string
		}
	}
	ok(t, json.Unmarshal([]byte(block), &policy))
	var allowed []string
	for _, s := range policy.Statement {
		allowed = append(allowed, s.Action...)
		for _, resource := range s.Resource {
			if strings.Contains(resource, "sqsonce-aws-*") || strings.HasSuffix(resource, ":aws:transform/Serverless-2016-10-31") {
				continue
			}
			if len(s.Condition) > 0 && strings.Contains(s.Condition["StringLike"]["lambda:FunctionArn"], "function:sqsonce-aws-*") {
				continue
			}
			for _, a := range s.Action {
				_, name, _ := strings.Cut(a, ":")
				if !strings.HasPrefix(name, "List") && !strings.HasPrefix(name, "Describe") && !strings.HasPrefix(name, "Get") && name != "ValidateTemplate" {
					t.Errorf("%s is allowed on %s", a, resource)
				}
			}
		}
	}
	for _, a := range allowed {
		if strings.Contains(a, "*") {
			t.Errorf("%s is allowed", a)
		}
	}
	for service, operations := range account.Operations() {
		for _, o := range operations {
			if want := actionsOf(service, o); !slices.ContainsFunc(want, func(a string) bool { return slices.Contains(allowed, a) }) {
				t.Errorf("%s of %s needs one of %v, which the policy does not allow", o, service, want)
			}
		}
	}
}

// actionsOf returns the actions that allow an operation: those of a batch are those of its parts.
func actionsOf(service, operation string) []string {
	switch operation {
	case "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction":
		return []string{"dynamodb:PartiQLUpdate"}
	case "TransactGetItems", "TransactWriteItems":
		return []string{"dynamodb:UpdateItem"}
	}
	if service == "sqs" {
		operation = strings.TrimSuffix(operation, "Batch")
	}
	return []string{service + ":" + operation}
}
