package account

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

const (
	testAccount = "123456789012"
	testPrefix  = "sqsonce-aws-0a1b2c3d-"
)

// sent is a transport that counts what reaches it.
type sent struct{ n int }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.n++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// A request is sent only if all that it names is of the run.
func TestGuard(t *testing.T) {
	t.Parallel()
	const (
		mine     = testPrefix + "q"
		url      = "https://sqs.eu-west-1.amazonaws.com/" + testAccount + "/"
		sqsARN   = "arn:aws:sqs:eu-west-1:" + testAccount + ":"
		tableARN = "arn:aws:dynamodb:eu-west-1:" + testAccount + ":table/"
		stackARN = "arn:aws:cloudformation:eu-west-1:" + testAccount + ":stack/"
	)
	for _, tt := range []struct {
		what, target, body string
		send               bool
	}{
		{"delete a queue", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + mine + `"}`, true},
		{"delete another's queue", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + `orders"}`, false},
		{"prefix of another run", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + `sqsonce-aws-ffffffff-q"}`, false},
		{"prefix not at the beginning", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + `x` + mine + `"}`, false},
		{"prefix in the path", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + mine + `/orders"}`, false},
		{"slash at the end", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + `orders/"}`, false},
		{"queue of another account", "AmazonSQS.SendMessage", `{"QueueUrl":"https://sqs.eu-west-1.amazonaws.com/999999999999/` + mine + `"}`, false},
		{"owner of another account", "AmazonSQS.GetQueueUrl", `{"QueueName":"` + mine + `","QueueOwnerAWSAccountId":"999999999999"}`, false},
		{"queue by its name alone", "AmazonSQS.PurgeQueue", `{"QueueUrl":"orders"}`, false},
		{"create a queue", "AmazonSQS.CreateQueue", `{"QueueName":"` + mine + `.fifo"}`, true},
		{"create another queue", "AmazonSQS.CreateQueue", `{"QueueName":"orders"}`, false},
		{"a name no queue has", "AmazonSQS.CreateQueue", `{"QueueName":"a b"}`, true},
		{"a FIFO name", "AmazonSQS.CreateQueue", `{"QueueName":"orders.fifo"}`, false},
		{"redrive", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"` + sqsARN + mine + `"}`, true},
		{"redrive of another queue", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"` + sqsARN + `orders"}`, false},
		{"redrive into another queue", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"` + sqsARN + mine + `","DestinationArn":"` + sqsARN + `orders"}`, false},
		{"redrive in another region", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"` + strings.Replace(sqsARN, "eu-west-1", "us-east-1", 1) + mine + `"}`, false},
		{"redrive in another account", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"` + strings.Replace(sqsARN, testAccount, "999999999999", 1) + mine + `"}`, false},
		{"short ARN", "AmazonSQS.StartMessageMoveTask", `{"SourceArn":"arn:aws:sqs"}`, false},
		{"an operation that no run needs", "AmazonSQS.AddPermission", `{"QueueUrl":"` + url + mine + `"}`, false},
		{"an operation that names nothing", "AmazonSQS.Misspelt", `{}`, true},
		{"no URL", "AmazonSQS.SendMessage", `{"MessageBody":"a"}`, true},
		{"no JSON", "AmazonSQS.SendMessage", `{"QueueUrl":`, true},
		{"more after JSON", "AmazonSQS.DeleteQueue", `{"QueueUrl":"` + url + `orders"}}`, false},
		{"list queues", "AmazonSQS.ListQueues", `{}`, true},

		{"delete a table", "DynamoDB_20120810.DeleteTable", `{"TableName":"` + mine + `"}`, true},
		{"delete another table", "DynamoDB_20120810.DeleteTable", `{"TableName":"orders"}`, false},
		{"another table by its ARN", "DynamoDB_20120810.DeleteTable", `{"TableName":"` + tableARN + `orders"}`, false},
		{"a table by its ARN", "DynamoDB_20120810.GetItem", `{"TableName":"` + tableARN + mine + `"}`, true},
		{"a name no table has", "DynamoDB_20120810.CreateTable", `{"TableName":"ab"}`, true},
		{"batch of two tables", "DynamoDB_20120810.BatchWriteItem", `{"RequestItems":{"` + mine + `":[],"orders":[]}}`, false},
		{"batch of one", "DynamoDB_20120810.BatchWriteItem", `{"RequestItems":{"` + mine + `":[]}}`, true},
		{"transaction with another table", "DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"` + mine + `"}},{"Delete":{"TableName":"orders"}}]}`, false},
		{"statement", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"DELETE FROM \"` + mine + `\" WHERE id='a'"}`, true},
		{"statement on another table", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"delete  from\n\"orders\" WHERE id='a'"}`, false},
		{"unquoted", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"UPDATE orders SET a=1 WHERE id='a'"}`, false},
		{"without a blank", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"UPDATE\"orders\" SET a=1 WHERE id='a'"}`, false},
		{"after a comment", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"UPDATE /* x */ orders SET a=1"}`, false},
		{"batch of statements", "DynamoDB_20120810.BatchExecuteStatement", `{"Statements":[{"Statement":"INSERT INTO \"orders\" VALUE {'id':'a'}"}]}`, false},
		{"transaction of statements", "DynamoDB_20120810.ExecuteTransaction", `{"TransactStatements":[{"Statement":"UPDATE \"orders\" SET a=1 WHERE id='a'"}]}`, false},
		{"statement without a table", "DynamoDB_20120810.ExecuteStatement", `{"Statement":"HELLO"}`, true},
		{"an operation that no run needs", "DynamoDB_20120810.DeleteBackup", `{"BackupArn":"` + tableARN + mine + `/backup/1"}`, false},
		{"a stream", "DynamoDBStreams_20120810.DescribeStream", `{"StreamArn":"` + tableARN + mine + `/stream/2026"}`, true},
		{"a stream of another table", "DynamoDBStreams_20120810.DescribeStream", `{"StreamArn":"` + tableARN + `orders/stream/2026"}`, false},
		{"an iterator", "DynamoDBStreams_20120810.GetRecords", `{"ShardIterator":"` + tableARN + mine + `/stream/2026|1|AA=="}`, true},
		{"an iterator of another table", "DynamoDBStreams_20120810.GetRecords", `{"ShardIterator":"` + tableARN + `orders/stream/2026|1|AA=="}`, false},
		{"streams of a table", "DynamoDBStreams_20120810.ListStreams", `{"TableName":"` + mine + `"}`, true},
		{"streams of another table", "DynamoDBStreams_20120810.ListStreams", `{"TableName":"orders"}`, false},
		{"an operation of tables on streams", "DynamoDBStreams_20120810.DeleteTable", `{"TableName":"` + mine + `"}`, false},
		{"another service", "Logs_20140328.DeleteLogGroup", `{"logGroupName":"` + mine + `"}`, false},

		{"who", "", "Action=GetCallerIdentity&Version=2011-06-15", true},
		{"assume a role", "", "Action=AssumeRole&RoleArn=x", false},
		{"list stacks", "", "Action=ListStacks", true},
		{"delete a stack", "", "Action=DeleteStack&StackName=" + mine, true},
		{"delete a stack by its ARN", "", "Action=DeleteStack&StackName=" + stackARN + mine + "/1", true},
		{"delete another stack", "", "Action=DeleteStack&StackName=orders", false},
		{"delete another stack by its ARN", "", "Action=DeleteStack&StackName=" + stackARN + "orders/" + mine, false},
		{"delete no stack", "", "Action=DeleteStack", false},
		{"two actions", "", "Action=ListStacks&Action=DeleteStack&StackName=orders", false},
		{"update another stack", "", "Action=UpdateStack&StackName=" + mine, false},
		{"delete a user", "", "Action=DeleteUser&UserName=" + mine, false},

		{"list buckets", "GET /?max-buckets=1000", "", true},
		{"delete a bucket", "DELETE /" + mine, "", true},
		{"delete another bucket", "DELETE /orders", "", false},
		{"delete an object", "DELETE /" + mine + "/a", "", true},
		{"delete another's object", "DELETE /orders/" + mine, "", false},
		{"bucket in the host", "DELETE /", "", false},
		{"escaped slash", "DELETE /orders%2F" + mine, "", false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			next := &sent{}
			g := &Guard{Account: testAccount, Region: "eu-west-1", Prefix: testPrefix, Next: next}
			_, err := g.RoundTrip(newRequest(t, tt.target, tt.body))
			if _, refused := errors.AsType[*Refused](err); refused == tt.send || next.n == 1 != tt.send {
				t.Errorf("got error %v, %d sent; want it sent: %t", err, next.n, tt.send)
			}
		})
	}
}

func newRequest(t *testing.T, target, body string) *http.Request {
	t.Helper()
	method, path := http.MethodPost, "/"
	if m, p, ok := strings.Cut(target, " "); ok {
		method, path, target = m, p, ""
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "https://aws.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case target != "":
		r.Header.Set("X-Amz-Target", target)
	case body != "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

// make aws-clean may delete what any run has left, and nothing else.
func TestGuardOfAllRuns(t *testing.T) {
	t.Parallel()
	g := &Guard{Account: testAccount}
	for name, want := range map[string]bool{
		testPrefix + "x": true, "sqsonce-aws-ffffffff-x": true, "sqsonce-aws-fffffff-x": false, "sqsonce-aws-fffffffg-x": false,
		"sqsonce-aws-": false, "sqsonce-aws": false, "x" + testPrefix: false, "": false, "orders": false,
	} {
		if got := g.Mine(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
	g.Only([]string{testPrefix + "x", "orders"})
	for name, want := range map[string]bool{testPrefix + "y": true, "sqsonce-aws-ffffffff-x": false, "orders": false, "": false} {
		if got := g.Mine(name); got != want {
			t.Errorf("of one run: %q: got %t, want %t", name, got, want)
		}
	}
	g.Only(nil)
	if g.Mine(testPrefix + "x") {
		t.Error("of no run: a name is of it")
	}
	g = &Guard{}
	if a, b := NewPrefix(), NewPrefix(); a == b || !g.Mine(a+"x") || !validPrefix.MatchString(a) {
		t.Errorf("prefixes %q and %q: want two different ones that the guard knows", a, b)
	}
}

// What is sent is what was checked.
func TestGuardSendsTheBody(t *testing.T) {
	t.Parallel()
	body := `{"QueueName":"` + testPrefix + `q"}`
	g := &Guard{Account: testAccount, Prefix: testPrefix, Next: roundTrip(func(r *http.Request) (*http.Response, error) {
		var b strings.Builder
		if err := r.Write(&b); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(b.String(), "\r\n\r\n"+body) {
			t.Errorf("sent %q, want the body %s", b.String(), body)
		}
		return &http.Response{Body: http.NoBody}, nil
	})}
	if _, err := g.RoundTrip(newRequest(t, "AmazonSQS.CreateQueue", body)); err != nil {
		t.Error(err)
	}
	if n := g.Requests()["sqs"]; n != 1 {
		t.Errorf("counted %d requests, want 1", n)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
