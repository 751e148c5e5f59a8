package main

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
)

var update = flag.Bool("update", false, "write the operations into docs/localaws.md")

// The table of docs/localaws.md is what the servers say of each operation that an SDK has: go test -run TestOperations -update
func TestOperations(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../../docs/localaws.md", "<!-- operations: written by a test -->\n\n", "<!-- end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Skip("only in the repository:", err)
	}
	url, _ := started(t)
	table := "| service | has | refuses |\n|---|---|---|\n"
	for _, s := range []struct {
		name, target string
		client       any
	}{
		{"SQS", "AmazonSQS", &sqs.Client{}}, {"DynamoDB", "DynamoDB_20120810", &dynamodb.Client{}},
		{"DynamoDB streams", "DynamoDBStreams_20120810", &dynamodbstreams.Client{}},
	} {
		has, lacks := asked(t, url, s.target, s.client)
		table += fmt.Sprintf("| %s | %s | %s |\n", s.name, strings.Join(has, ", "), strings.Join(lacks, ", "))
	}
	table += fmt.Sprintf("| Lambda | %s | all others |\n\n", strings.Join(slices.Sorted(maps.Keys(lambdaOperations)), ", "))
	before, rest, found := strings.Cut(string(text), begin)
	written, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("the page has no %q", begin)
	case *update:
		must.Do(t, os.WriteFile(page, []byte(before+begin+table+end+after), 0o644))
	case written != table:
		t.Errorf("the page is not what the servers have; go test -run TestOperations -update writes\n%s", table)
	}
}

// asked asks for each operation of a client, without its input.
func asked(t *testing.T, url, target string, client any) (has, lacks []string) {
	t.Helper()
	for i := range reflect.TypeOf(client).NumMethod() {
		name := reflect.TypeOf(client).Method(i).Name
		if name == "Options" {
			continue
		}
		header := http.Header{"X-Amz-Target": {target + "." + name}, "Authorization": {"x"}, "Content-Type": {"application/x-amz-json-1.0"}}
		if _, body := do(t, "POST", url, header, strings.NewReader("{}")); strings.Contains(body, "does not implement the operation") {
			lacks = append(lacks, name)
		} else {
			has = append(has, name)
		}
	}
	return has, lacks
}
