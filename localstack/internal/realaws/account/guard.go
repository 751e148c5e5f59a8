package account

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Guard is the transport of all clients. It reads each request as it is sent, and sends it only if every resource that it
// names is of the run, in the account and region, and if the operation is one that a run needs.
//
// A name that no resource can have is sent: suites test that AWS refuses it.
type Guard struct {
	Account, Region string
	Prefix          string // "": those of all runs
	Next            http.RoundTripper
	runs            []string // prefixes that Only has named; nil: all

	mu    sync.Mutex
	count map[string]int
}

// Refused is the error of a request that the guard did not send.
type Refused struct{ What, Reason string }

func (r *Refused) Error() string { return fmt.Sprintf("%s was not sent: %s", r.What, r.Reason) }

// RetryableError tells the SDK not to try again.
func (r *Refused) RetryableError() bool { return false }

// RoundTrip implements http.RoundTripper.
func (g *Guard) RoundTrip(r *http.Request) (*http.Response, error) {
	service, r, err := g.read(r)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	if g.count == nil {
		g.count = map[string]int{}
	}
	g.count[service]++
	g.mu.Unlock()
	return g.Next.RoundTrip(r)
}

// Requests returns how many requests were sent to each service.
func (g *Guard) Requests() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.count)
}

// read returns the service, and a request like r whose body has not been read.
func (g *Guard) read(r *http.Request) (service string, same *http.Request, err error) {
	target, form := r.Header.Get("X-Amz-Target"), strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	if target == "" && !form {
		if err = g.checkS3(r); err != nil && r.Body != nil {
			_ = r.Body.Close() // not sent
		}
		return "s3", r, err
	}
	var body []byte
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		if closeErr := r.Body.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return "", nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if form {
		service, err = g.checkForm(body)
	} else {
		service, err = g.checkJSON(target, body)
	}
	return service, r, err
}

var (
	sqsOperations = []string{
		"CreateQueue", "DeleteQueue", "GetQueueUrl", "ListQueues", "GetQueueAttributes", "SetQueueAttributes", "PurgeQueue",
		"SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch", "ChangeMessageVisibility",
		"ChangeMessageVisibilityBatch", "TagQueue", "UntagQueue", "ListQueueTags", "ListDeadLetterSourceQueues",
		"StartMessageMoveTask", "ListMessageMoveTasks",
		"CancelMessageMoveTask", // by a handle, which SQS gives to who may list the tasks of a queue
	}
	dynamoDBOperations = []string{
		"CreateTable", "DeleteTable", "DescribeTable", "ListTables", "UpdateTable", "UpdateTimeToLive", "DescribeTimeToLive",
		"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem",
		"TransactGetItems", "TransactWriteItems", "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
		"TagResource", "UntagResource", "ListTagsOfResource", "DescribeContinuousBackups", "UpdateContinuousBackups",
	}
	streamOperations = []string{"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"}
)

// Operations returns what the guard sends to SQS and DynamoDB.
func Operations() map[string][]string {
	return map[string][]string{"sqs": sqsOperations, "dynamodb": slices.Concat(dynamoDBOperations, streamOperations)}
}

func (g *Guard) checkJSON(target string, body []byte) (service string, err error) {
	namespace, operation, _ := strings.Cut(target, ".")
	var input map[string]any
	// Not Unmarshal: a server may read the first value of a body and not see what follows. What is no object names nothing.
	readable := json.NewDecoder(bytes.NewReader(body)).Decode(&input) == nil
	var known []string
	var check func(map[string]any) string
	switch namespace {
	case "AmazonSQS":
		service, known, check = "sqs", sqsOperations, g.queues
	case "DynamoDB_20120810":
		service, known, check = "dynamodb", dynamoDBOperations, g.tables
	case "DynamoDBStreams_20120810":
		service, known, check = "dynamodb", streamOperations, g.tables
	default:
		return "", &Refused{target, "a run needs no such service"}
	}
	if readable && len(input) > 0 && !slices.Contains(known, operation) {
		return "", &Refused{target, "a run needs no such operation"}
	}
	if other := check(input); other != "" {
		return "", &Refused{target, other + " is not of this run"}
	}
	return service, nil
}

var (
	queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}(\.fifo)?$`)
	tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	anyName   = regexp.MustCompile("")
)

// queues returns a queue in the input that is not of the run, or "".
func (g *Guard) queues(input map[string]any) string {
	for _, field := range []string{"QueueUrl", "QueueName", "SourceArn", "DestinationArn"} {
		text, _ := input[field].(string)
		name := text
		if field == "QueueUrl" {
			path := strings.Split(strings.TrimRight(text, "/"), "/")
			name = path[len(path)-1]
			if len(path) > 1 && number.MatchString(path[len(path)-2]) && path[len(path)-2] != g.Account {
				return text
			}
		}
		if !g.allowed(name, queueName) {
			return text
		}
	}
	if owner, ok := input["QueueOwnerAWSAccountId"].(string); ok && owner != g.Account {
		return "a queue of account " + owner
	}
	return ""
}

// allowed reports whether a call may have the name or ARN. None may have "", which names nothing.
func (g *Guard) allowed(name string, possible *regexp.Regexp) bool {
	if part := strings.SplitN(name, ":", 6); part[0] == "arn" {
		if len(part) < 6 || part[3] != g.Region || part[4] != g.Account {
			return false
		}
		return g.Mine(strings.TrimPrefix(strings.TrimPrefix(part[5], "table/"), "stack/"))
	}
	return g.Mine(name) || !possible.MatchString(name)
}

// tableFields name a table, or a stream of one. An iterator begins with the stream's ARN.
var tableFields = []string{"TableName", "TableArn", "ResourceArn", "StreamArn", "ShardIterator"}

// tables returns a table anywhere in the input that is not of the run, or "".
func (g *Guard) tables(input map[string]any) string {
	for field, value := range input {
		switch v := value.(type) {
		case string:
			if slices.Contains(tableFields, field) && !g.allowed(v, tableName) {
				return v
			}
			if field == "Statement" && !g.statement(v) {
				return v
			}
		case map[string]any:
			if field == "RequestItems" {
				for name := range v {
					if !g.allowed(name, tableName) {
						return name
					}
				}
			}
			if other := g.tables(v); other != "" {
				return other
			}
		case []any:
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					if other := g.tables(m); other != "" {
						return other
					}
				}
			}
		}
	}
	return ""
}

// ofStatement finds the words after which PartiQL has a table, and the table.
var ofStatement = regexp.MustCompile(`(?i)\b(?:from|into|update)\b\s*("[^"]*"|[^\s"]*)`)

// statement reports whether a PartiQL statement is for tables of the run only. One without any table does nothing.
func (g *Guard) statement(s string) bool {
	for _, m := range ofStatement.FindAllStringSubmatch(s, -1) {
		if !g.Mine(strings.Trim(m[1], `"`)) {
			return false
		}
	}
	return true
}

// checkForm checks a call of STS or CloudFormation.
func (g *Guard) checkForm(body []byte) (service string, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", &Refused{"a form", err.Error()}
	}
	for field, values := range form {
		if len(values) > 1 { // whose first one may not be the one that AWS reads
			return "", &Refused{"a form", "it has " + field + " twice"}
		}
	}
	action, stack := form.Get("Action"), form.Get("StackName")
	switch {
	case action == "GetCallerIdentity":
		return "sts", nil
	case action == "ListStacks", action == "DescribeStacks" && stack == "":
		return "cloudformation", nil
	case action != "DescribeStacks" && action != "DeleteStack":
		return "", &Refused{action, "a run needs no such operation"}
	case !g.allowed(stack, anyName):
		return "", &Refused{action, fmt.Sprintf("the stack %q is not of this run", stack)}
	}
	return "cloudformation", nil
}

// checkS3 checks a request whose path begins with the bucket: the clients have UsePathStyle.
func (g *Guard) checkS3(r *http.Request) error {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	what := r.Method + " " + r.URL.Path
	switch {
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return &Refused{what, "a run copies no objects"}
	case bucket == "" && r.Method == http.MethodGet, g.Mine(bucket):
		return nil
	}
	return &Refused{what, fmt.Sprintf("the bucket %q is not of this run", bucket)}
}
