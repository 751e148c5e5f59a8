package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// calls has what the commands of all tests have called: "sqs:SendMessage orders", by policy.
type calls struct{ policy string }

var made = struct {
	sync.Mutex
	calls map[string]map[string]bool
}{calls: map[string]map[string]bool{"read": {}, "act": {}}}

// begin says which policy the next command needs: none where "orders" is taken for a dead-letter queue.
func (c *calls) begin(args []string) {
	c.policy = "act"
	if len(args) > 1 && (args[0] == "top" || args[1] == "ls" || args[1] == "show" || args[1] == "export" && !slices.Contains(args, "--drain")) {
		c.policy = "read"
	}
	if len(args) > 0 && args[0] == "doctor" {
		c.policy = "read"
	}
	if slices.Contains(args, "--probe") { // with the credentials of the consumer
		c.policy = ""
	}
	if i := slices.Index(args, "--dlq"); i >= 0 && args[i+1] == "orders" {
		c.policy = ""
	}
}

type recorder struct {
	calls *calls
	to    interface {
		Do(*http.Request) (*http.Response, error)
	}
}

func (r recorder) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	var in struct {
		QueueUrl, QueueName, SourceArn, TableName string
		TransactItems                             []struct{ Get struct{ TableName string } }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	service, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	service = map[bool]string{true: "sqs", false: "dynamodb"}[service == "AmazonSQS"]
	resource := in.QueueUrl + in.QueueName + in.SourceArn + in.TableName
	if len(in.TransactItems) > 0 {
		resource = in.TransactItems[0].Get.TableName
	}
	resource = strings.TrimSuffix(resource[strings.LastIndexAny(resource, "/:")+1:], ".fifo")
	if r.calls.policy != "" && slices.Contains([]string{"orders", "orders-dlq", "dedup", "outbox"}, resource) {
		made.Lock()
		made.calls[r.calls.policy][service+":"+awserr.ActionOf(op)+" "+resource] = true
		made.Unlock()
	}
	return r.to.Do(req)
}

// TestMain compares the policies of docs/operating.md with what the commands of all tests have called: each of these is allowed,
// and nothing else is where all tests were run. Who acts has both policies.
func TestMain(m *testing.M) {
	code := testserver.Run(m)
	read, act := allowedBy("read"), allowedBy("act")
	for action := range act {
		if read[action] {
			fmt.Println("docs/operating.md: both policies allow", action)
			code = 1
		}
	}
	maps.Copy(act, read)
	called := maps.Clone(made.calls["read"])
	for action := range called {
		if !read[action] {
			fmt.Println("docs/operating.md: the policy to read does not allow", action)
			code = 1
		}
	}
	for action := range made.calls["act"] {
		if called[action] = true; !act[action] {
			fmt.Println("docs/operating.md: the policy to act does not allow", action)
			code = 1
		}
	}
	for action := range act {
		if all := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""; all && code == 0 && !called[action] {
			fmt.Println("docs/operating.md: no command needs", action)
			code = 1
		}
	}
	os.Exit(code)
}

// allowedBy returns what a policy allows, as calls has it.
func allowedBy(name string) map[string]bool {
	text, err := os.ReadFile("../../../docs/operating.md")
	block := regexp.MustCompile("(?s)<!-- policy " + name + " -->\n+```json\n(.*?)```").FindSubmatch(text)
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
		}
	}
	if err != nil || block == nil || json.Unmarshal(block[1], &policy) != nil {
		fmt.Println("docs/operating.md has no policy", name, err)
		os.Exit(1)
	}
	allowed := map[string]bool{}
	for _, s := range policy.Statement {
		for _, action := range s.Action {
			for _, r := range s.Resource {
				allowed[action+" "+r[strings.LastIndexAny(r, "/:")+1:]] = s.Effect == "Allow"
			}
		}
	}
	return allowed
}

// A call that is denied ends each command with 6, and the name of the action as policies have it.
func TestDenied(t *testing.T) {
	looks := []string{"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks", "sqs:ReceiveMessage", "dynamodb:GetItem"}
	for command, actions := range map[string][]string{
		"dlq ls":                      append([]string{"sqs:ChangeMessageVisibility"}, looks...),
		"dlq redrive --all --dry-run": append([]string{"sqs:ChangeMessageVisibility"}, looks...),
		"dlq redrive --all --yes":     append([]string{"sqs:SendMessage", "sqs:DeleteMessage"}, looks...),
		"dlq export ARCHIVE":          append([]string{"sqs:ChangeMessageVisibility"}, looks...),
		"dlq delete --archive ARCHIVE --all --yes --expect 3": append([]string{"sqs:DeleteMessage"}, looks...),
		"dlq restore ARCHIVE --yes":                           {"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues", "sqs:ListMessageMoveTasks", "sqs:SendMessage"},
		"top --queue orders":                                  {"sqs:GetQueueUrl", "sqs:GetQueueAttributes"},
		"outbox ls":                                           {"dynamodb:Scan"},
		"outbox show ord-2":                                   {"dynamodb:Query", "dynamodb:GetItem"},
		"outbox unpark ord-1 2 --yes":                         {"dynamodb:UpdateItem"},
		"outbox discard ord-1 2 --yes":                        {"dynamodb:DeleteItem"},
		"record show orders|e":                                {"dynamodb:GetItem"},
		"record ls":                                           {"dynamodb:Scan"},
		"record free orders|e --yes":                          {"dynamodb:GetItem", "dynamodb:UpdateItem"},
		"record complete orders|e --yes":                      {"dynamodb:GetItem", "dynamodb:UpdateItem"},
	} {
		for _, action := range actions {
			run(t, command+"/"+action, func(w *world) {
				w.put("e", dedup.StateCrashed)
				w.deadLetters(3)
				w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
				if strings.Contains(command, "restore") {
					w.dlq("export ARCHIVE")
				}
				if strings.HasPrefix(command, "outbox") {
					w.outboxFrom2()
				}
				service, op, _ := strings.Cut(action, ":")
				if op == "GetItem" && strings.HasPrefix(command, "outbox") {
					op = "TransactGetItems"
				}
				switch op {
				case "SendMessage", "DeleteMessage", "ChangeMessageVisibility":
					op += "Batch"
				}
				plan := fault.Plan{Rules: []fault.Rule{{Op: op, Prob: 1, Do: fault.Error, Code: "AccessDeniedException"}}}
				if service == "sqs" {
					w.stack.MemSQS().Set(plan)
				} else {
					w.stack.MemDynamoDB().Set(plan)
				}
				if got := w.run(strings.Fields(strings.ReplaceAll(command, "ARCHIVE", w.archive()))...); got.code != exitDenied || !strings.Contains(got.err, "needs: "+action+"\n") {
					w.Errorf("%+v", got)
				}
			})
		}
	}
}
