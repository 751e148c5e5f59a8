package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// The tag's files are compiled by no other test without emulators.
func TestSuitesCompile(t *testing.T) {
	t.Parallel()
	if text, err := exec.CommandContext(t.Context(), "go", "vet", "-tags", "aws", "./suites").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// A run deletes its own resources and no others; -clean deletes those of all runs, and nothing without the prefix. Neither
// does anything without a yes, or in another account.
func TestRunAndClean(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": testserver.Moto.Shared(t).URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "fake", "AWS_SECRET_ACCESS_KEY": "fake",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_PROFILE": "", "SQSONCE_AWS_ACCOUNT": "123456789012",
	} {
		t.Setenv(name, value)
	}
	cfg := must.Get(open(t.Context()))(t)
	createAll(t, cfg, "foreign-")
	createAll(t, cfg, allRuns+"earlier-")
	foreign, all := names(t, cfg, "foreign-"), names(t, cfg, "")
	want := func(when string, want []string) {
		t.Helper()
		if got := names(t, cfg, ""); !slices.Equal(got, want) {
			t.Errorf("after %s: %q, want %q", when, got, want)
		}
	}
	command := func(o options, answer string) (string, error) {
		var out strings.Builder
		err := o.main(t.Context(), nil, strings.NewReader(answer), &out)
		return out.String(), err
	}

	if _, err := command(options{clean: true}, "y\n"); err == nil {
		t.Error("a clean went on without a yes")
	}
	t.Setenv("SQSONCE_AWS_ACCOUNT", "999999999999")
	if _, err := command(options{clean: true, yes: true}, ""); err == nil {
		t.Error("a clean went on in another account")
	}
	t.Setenv("SQSONCE_AWS_ACCOUNT", "123456789012")
	want("refusals", all)

	report := filepath.Join(t.TempDir(), "report.txt")
	out, err := command(options{run: "TestSmoke/worker/standard", report: report, quick: true}, "yes\n")
	if err == nil || !strings.Contains(out, "deleting queue "+allRuns) { // moto has no StartMessageMoveTask: the case differs
		t.Errorf("run: error %v\n%s", err, out)
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), "FAIL: TestSmoke/worker/standard") {
		t.Errorf("report (error %v):\n%s", err, text)
	}
	want("a run", all)

	if out, err := command(options{clean: true, yes: true}, ""); err != nil {
		t.Errorf("clean: error %v\n%s", err, out)
	}
	want("clean", foreign)
}

// createAll creates a resource of each kind, the table with deletion protection.
func createAll(t *testing.T, cfg aws.Config, prefix string) {
	t.Helper()
	must.Get(sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(prefix + "queue")}))(t)
	ddb := dynamodb.NewFromConfig(cfg)
	must.Do(t, dynamostore.CreateTable(t.Context(), ddb, prefix+"table"))
	must.Get(ddb.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(prefix + "table"), DeletionProtectionEnabled: aws.Bool(true)}))(t)
	must.Get(cloudformation.NewFromConfig(cfg).CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String(prefix + "stack"), TemplateBody: aws.String(`{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + prefix + `of-stack"}}}}`),
	}))(t)
}

func names(t *testing.T, cfg aws.Config, prefix string) (names []string) {
	t.Helper()
	for _, r := range must.Get(find(t.Context(), cfg, prefix))(t) {
		names = append(names, r.String())
	}
	slices.Sort(names)
	return names
}
