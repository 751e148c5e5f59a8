package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/counting"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The exit codes of what no record decides.
func TestExitCodes(t *testing.T) {
	flags := []string{"--queue", "orders", "--consumer", consumer, "--table", "dedup"}
	list := append([]string{"dlq", "ls"}, flags...)
	refuse := func(op, code string) fault.Plan {
		return fault.Plan{Rules: []fault.Rule{{Op: op, Prob: 1, Do: fault.Error, Code: code}}}
	}
	for name, test := range map[string]struct {
		args        []string
		env         map[string]string
		sqs, dynamo fault.Plan
		code        exitCode
		says        string
	}{
		"done":                     {args: list},
		"environment":              {args: []string{"dlq", "ls"}, env: map[string]string{"SQSONCE_QUEUE": "orders", "SQSONCE_CONSUMER": consumer, "SQSONCE_TABLE": "dedup"}},
		"dlq beats environment":    {args: []string{"dlq", "ls", "--dlq", "orders-dlq.fifo"}, env: map[string]string{"SQSONCE_QUEUE": "orders"}, says: "orders-dlq.fifo"},
		"by ARN":                   {args: []string{"dlq", "ls", "--queue", "arn:aws:sqs:us-east-1:000000000000:orders"}, says: "orders-dlq (standard)"},
		"by URL":                   {args: []string{"dlq", "ls", "--dlq", "http://sqs.memory/000000000000/orders-dlq"}, says: "orders-dlq (standard)"},
		"no consumer":              {args: []string{"dlq", "ls", "--queue", "orders"}, says: "no --consumer"},
		"help":                     {args: []string{"dlq"}},
		"no command":               {args: []string{"dlq", "drop"}, code: exitUsage, says: `unknown command "drop"`},
		"no such flag":             {args: []string{"dlq", "ls", "--nothing"}, code: exitUsage, says: "--help"},
		"no queue":                 {args: []string{"dlq", "ls"}, code: exitUsage, says: "SQSONCE_QUEUE"},
		"two queues":               {args: []string{"dlq", "ls", "--queue", "orders", "--dlq", "orders-dlq"}, code: exitUsage},
		"no table":                 {args: []string{"dlq", "ls", "--queue", "orders", "--consumer", consumer}, code: exitUsage, says: "SQSONCE_TABLE"},
		"bad table":                {args: []string{"record", "show", "a#b", "--table", "?"}, code: exitUsage, says: "table"},
		"store":                    {args: []string{"record", "show", "a#b", "--store", "dynamodb:dedup"}},
		"store of environment":     {args: []string{"record", "show", "a#b"}, env: map[string]string{"SQSONCE_STORE": "dynamodb:dedup", "SQSONCE_TABLE": "none"}},
		"table beats environment":  {args: []string{"record", "show", "a#b", "--table", "dedup"}, env: map[string]string{"SQSONCE_STORE": "postgres://h/d"}},
		"other store":              {args: []string{"record", "show", "a#b", "--store=postgres://u:s3cret@h/d"}, code: exitUsage, says: "--store: sqsonce reads dynamodb:TABLE only. sqsonce-full"},
		"URL as a table":           {args: []string{"record", "show", "a#b", "--table=postgres://u:s3cret@h/d"}, code: exitUsage, says: "--table is a URL"},
		"secret in a queue's URL":  {args: []string{"dlq", "ls", "--dlq", "https://u:s3cret@sqs.eu-west-1.amazonaws.com/000000000000/orders-dlq"}, code: exitUsage, says: "the queue's URL"},
		"secret in a queue's name": {args: []string{"dlq", "ls", "--queue", "u:s3cret@sqs"}, code: exitUsage, says: "the queue's URL"},
		"no store":                 {args: []string{"record", "show", "a#b", "--store", "h/d"}, code: exitUsage, says: "--store: not a URL"},
		"table and store":          {args: []string{"record", "show", "a#b", "--store", "dynamodb:dedup", "--table", "dedup"}, code: exitUsage, says: "[table store]"},
		"bad consumer":             {args: []string{"dlq", "ls", "--queue", "orders", "--consumer", "a#b", "--table", "dedup"}, code: exitUsage, says: "consumer"},
		"bad state":                {args: append(slices.Clone(list), "--state", "dead"), code: exitUsage, says: "crashed"},
		"bad retention":            {args: append(slices.Clone(list), "--retention", "2w"), code: exitUsage},
		"short retention":          {args: append(slices.Clone(list), "--retention", "1m"), code: exitUsage, says: "Retention"},
		"negative retention":       {args: append(slices.Clone(list), "--retention", "-3d"), code: exitUsage},
		"key without consumer":     {args: []string{"record", "show", "orders|1", "--table", "dedup"}, code: exitUsage, says: "--consumer"},
		"empty key":                {args: []string{"record", "show", "", "--table", "dedup"}, code: exitUsage},
		"limit 0":                  {args: []string{"record", "ls", "--limit", "0", "--table", "dedup"}, code: exitUsage},
		"no such queue":            {args: []string{"dlq", "ls", "--queue", "nothing"}, code: exitFailed, says: "queue nothing does not exist in us-east-1"},
		"other Region":             {args: []string{"dlq", "ls", "--queue", "arn:aws:sqs:eu-west-1:000000000000:orders"}, code: exitFailed, says: "eu-west-1"},
		"other Region of a URL":    {args: []string{"dlq", "ls", "--dlq", "https://sqs.eu-west-1.amazonaws.com/000000000000/orders-dlq"}, code: exitFailed, says: "eu-west-1"},
		"no such message":          {args: append([]string{"dlq", "show", "1"}, flags...), code: exitFailed, says: "not among"},
		"no such table":            {args: []string{"record", "show", "a#b", "--table", "nothing"}, code: exitFailed, says: "nothing"},
		"no dead-letter queue":     {args: []string{"dlq", "ls", "--queue", "orders-dlq"}, code: exitRefused, says: "--dlq orders-dlq"},
		"not a dead-letter queue":  {args: []string{"dlq", "ls", "--dlq", "orders"}, code: exitRefused, says: "--not-dead-letter"},
		"a queue with a policy":    {args: []string{"dlq", "ls", "--dlq", "orders", "--not-dead-letter"}, code: exitRefused, says: "--spend-receives"},
		"both allowed":             {args: []string{"dlq", "ls", "--dlq", "orders", "--not-dead-letter", "--spend-receives"}},
		"denied by SQS":            {args: list, sqs: refuse("ReceiveMessage", "AccessDeniedException"), code: exitDenied, says: "sqs:ReceiveMessage"},
		"denied before":            {args: list, sqs: refuse("ListMessageMoveTasks", "AccessDeniedException"), code: exitDenied, says: "sqs:ListMessageMoveTasks"},
		"denied by DynamoDB":       {args: []string{"record", "show", "a#b", "--table", "dedup"}, dynamo: refuse("GetItem", "AccessDeniedException"), code: exitDenied, says: "dynamodb:GetItem"},
		"a scan denied":            {args: []string{"record", "ls", "--table", "dedup"}, dynamo: refuse("Scan", "AccessDeniedException"), code: exitDenied, says: "dynamodb:Scan"},
		"records denied":           {args: list, dynamo: refuse("GetItem", "AccessDeniedException"), code: exitDenied, says: "were not read"},
		"records unavailable":      {args: list, dynamo: refuse("GetItem", "InternalServerError"), code: exitPart, says: "were not read"},
		"table missing":            {args: []string{"dlq", "ls", "--queue", "orders", "--consumer", consumer, "--table", "nothing"}, code: exitPart, says: "sqsonce-full --store"},
		"SQS fails":                {args: list, sqs: refuse("ReceiveMessage", "InternalError"), code: exitFailed},
		"found":                    {args: append(slices.Clone(list), "--exit-code"), code: exitFound},
		"found none of that state": {args: append(slices.Clone(list), "--exit-code", "--state", "foreign")},
		"found none of that class": {args: append(slices.Clone(list), "--exit-code", "--class", "000000"), says: "no message of class 000000"},
		"two classes in one":       {args: append(slices.Clone(list), "--class", "000000,000001"), code: exitUsage, says: "repeat --class"},
		"no class":                 {args: append([]string{"dlq", "redrive", "--class", "zzz"}, flags...), code: exitUsage, says: "repeat --class"},
	} {
		run(t, name, func(w *world) {
			w.send("orders-dlq", "e", "b")
			w.stack.MemSQS().Set(test.sqs)
			w.stack.MemDynamoDB().Set(test.dynamo)
			w.env = test.env
			got := w.run(test.args...)
			if got.code != test.code || !strings.Contains(got.err, test.says) || strings.Contains(got.err, "s3cret") {
				w.Errorf("exit %d, want %d with %q: %s%s", got.code, test.code, test.says, got.out, got.err)
			}
		})
	}
}

// An interrupt ends a listing in part: what was read is printed, and visible again. With --timeout it has failed.
func TestInterruptedListing(t *testing.T) {
	bubble(t, func(w *world) {
		for range 25 {
			w.send("orders-dlq", "e", "b")
		}
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: 2, Times: 9, Do: fault.Delay, Delay: 2 * time.Second}}})
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		got := w.runIn(ctx, "dlq", "ls", "--queue", "orders")
		if got.code != exitPart || !strings.Contains(got.err, "messages of about 25") || got.out == "" {
			t.Errorf("%+v", got)
		}
		if got := w.run("dlq", "ls", "--queue", "orders", "--timeout", "1s"); got.code != exitFailed || !strings.Contains(got.err, "deadline") {
			t.Errorf("%+v", got)
		}
		for _, m := range w.stack.MemSQS().Messages("orders-dlq") {
			if m.InFlight {
				t.Errorf("message %s is hidden", m.ID)
			}
		}
	})
}

// Each of several classes is listed.
func TestListClasses(t *testing.T) {
	bubble(t, func(w *world) {
		w.fill()
		w.env["SQSONCE_QUEUE"], w.env["SQSONCE_CONSUMER"], w.env["SQSONCE_TABLE"] = "orders", consumer, "dedup"
		got := w.run("dlq", "ls", "--class", "848dda", "--class", "aeb4fa")
		if strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "\tcrashed\t") || !strings.Contains(got.out, "\trunning\t") {
			t.Errorf("%+v", got)
		}
	})
}

// A class that has hidden the details of several reasons says so on a terminal.
func TestListTexts(t *testing.T) {
	bubble(t, func(w *world) {
		w.width = 200
		for i, reason := range []string{"order 1 not paid", "order 2 not paid", "card declined", "card declined"} {
			w.send("orders-dlq", "e"+strconv.Itoa(i), "b", sqsonce.AttrRejectReason, reason)
		}
		got := w.run("dlq", "ls", "--queue", "orders", "--consumer", consumer, "--table", "dedup")
		if !strings.Contains(got.out, "order * not paid (2 texts)\n") || !strings.Contains(got.out, "card declined\n") {
			t.Errorf("%+v", got)
		}
	})
}

// A reason that is also the problem with the record is shown once.
func TestShowOnce(t *testing.T) {
	bubble(t, func(w *world) {
		id := w.fill()[ops.StateUnknown]
		got := w.run("dlq", "show", id, "--queue", "orders", "--consumer", consumer, "--table", "dedup")
		if strings.Count(got.out, "no record under") != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// The program's options, and --source, make the keys that the consumer makes.
func TestKeys(t *testing.T) {
	ofBody := func(m *sqsonce.Message) (string, error) {
		if m.Body == "none" {
			return "", errors.New("no order")
		}
		return sqsonce.EventKey("shop", m.Body)
	}
	const (
		envelope = `{"Type":"Notification","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324","TopicArn":"arn:aws:sns:us-east-1:000000000000:t","Message":"42","Timestamp":"2026-01-01T00:00:00.000Z"}`
		s3       = `{"Records":[{"eventSource":"aws:s3","eventName":"e","s3":{"bucket":{"name":"b"},"object":{"key":"k","sequencer":"1"}}}]}`
		whole    = "--not-dead-letter"
	)
	for name, test := range map[string]struct {
		opts              Options
		queue, body, want string
		flags             []string
	}{
		"function":           {opts: Options{Key: ofBody}, queue: "orders-dlq", body: "42", want: "billing#shop|42"},
		"function fails":     {opts: Options{Key: ofBody}, queue: "orders-dlq", body: "none", want: "\tunknown\t"},
		"envelope":           {opts: Options{Key: ofBody}, queue: "orders-dlq", body: envelope, want: "billing#shop|42\t"},
		"envelope as it is":  {opts: Options{Key: ofBody, NoOpenEnvelope: true}, queue: "orders-dlq", body: envelope, want: "billing#sha256|"},
		"S3 not said":        {queue: "orders-dlq.fifo", body: s3, want: "\tunknown\t"},
		"S3":                 {queue: "orders-dlq.fifo", body: s3, want: "billing#s3-notification|b|k||1|e", flags: []string{"--s3"}},
		"S3 by the program":  {opts: Options{S3: true}, queue: "orders-dlq.fifo", body: s3, want: "billing#s3-notification|"},
		"no S3":              {opts: Options{S3: true}, queue: "orders-dlq.fifo", body: s3, want: "billing#sqs-message|", flags: []string{"--s3=false"}},
		"message ID":         {queue: "orders-dlq.fifo", body: "b", want: "billing#sqs-message|"},
		"deduplication ID":   {opts: Options{TrustDedupID: true}, queue: "orders-dlq.fifo", body: "b", want: "billing#sqs-dedup|"},
		"source not known":   {queue: "lone", body: "b", want: "\tunknown\t", flags: []string{whole}},
		"source by the flag": {queue: "lone", body: "b", want: "sqs-message|arn:aws:sqs:us-east-1:000000000000:orders", flags: []string{whole, "--source", "arn:aws:sqs:us-east-1:000000000000:orders"}},
	} {
		run(t, name, func(w *world) {
			out := must.Get(w.stack.SQS.CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String("lone")}))(w)
			w.stack.QueueURL["lone"] = *out.QueueUrl
			w.opts = test.opts
			w.send(test.queue, "", test.body)
			args := []string{"dlq", "ls", "--messages", "--dlq", test.queue, "--consumer", consumer, "--table", "dedup"}
			if got := w.run(append(args, test.flags...)...); got.code != exitDone || !strings.Contains(got.out, test.want) {
				w.Errorf("%+v, want %q", got, test.want)
			}
		})
	}
}

// Each command's example runs as it stands, by the clients and the configuration of the real program, on AWS over HTTP.
func TestExamples(t *testing.T) {
	clearEnvironment(t)
	w := newWorld(t, true)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": w.stack.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "XDG_STATE_HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	w.consume("orders", func(context.Context, *sqsonce.Message) error { return nil })
	t.Chdir(t.TempDir()) // for archives
	worker := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(rw).Encode(w.working("billing", "orders", 1)()); err != nil {
			t.Error(err)
		}
	}))
	defer worker.Close()
	box := w.emptyOutbox()
	example := fifo.Event{ID: "ord-42/v7", Group: "ord-42", Body: "{}"}
	w.commit(box, example, 7)
	must.Do(w, box.Park(t.Context(), outbox.Entry{Event: example, Source: "orders", Seq: 7}, outbox.OnRefusedHalt, "too long"))
	walk((&app{}).commands(), func(c *cobra.Command) {
		if c.HasSubCommands() {
			return
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example, or no description", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			if left(w) == 0 { // the first, or one was redriven
				w.send("orders-dlq", "ord-42", "b", sqsonce.AttrRejectReason, "card provider: status 503 for order 17")
			}
			id := w.stack.MemSQS().Messages("orders-dlq")[0].ID
			if strings.Contains(line, "replay") { // of an event that the consumer does not remember
				id = w.send("orders-dlq", "ord-43", "b")
			}
			line = messageID.ReplaceAllString(strings.TrimSpace(line), id)
			line = strings.ReplaceAll(line, "http://billing:8080", worker.URL)
			t.Run(line, func(t *testing.T) {
				w := *w
				w.T = t
				switch {
				case strings.Contains(line, "record free"), strings.Contains(line, "--state crashed"):
					w.left("ord-42", "dead", dedup.StateCrashed)
				case strings.Contains(line, "--completed"):
					w.left("ord-42", "dead", dedup.StateCompleted)
				case strings.Contains(line, "replay"): // one that goes on with another
					w.left("ord-43", host.OperatorPrefix+"ann/1", dedup.StateReleased)
				default:
					w.left("ord-42", "dead", dedup.StateReleased)
				}
				var out, errs strings.Builder
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				a := &app{in: strings.NewReader("y\n"), out: &out, err: &errs, asks: true, getenv: os.Getenv, connect: connect}
				if strings.Contains(line, "outbox cancel") { // in SQL
					a.opts.Outbox = newLaterBox().open
				}
				if strings.Contains(line, "--function") && !strings.Contains(line, "doctor") { // it has a mapping
					w.functions("orders")
					a.connect = w.connect
				}
				if strings.Contains(line, "sqsonce console") { // it runs until then
					a.out = writer(func(p []byte) (int, error) { interrupt(); return out.Write(p) })
				}
				args, ok := strings.CutPrefix(line, "sqsonce ")
				want := exitDone
				switch { // the world is no deployment for production, and has no Lambda
				case strings.Contains(args, "--strict"), strings.HasPrefix(args, "status --table"): // its worker does not watch
					want = exitFound
				case strings.Contains(args, "doctor"):
					want = exitPart
				}
				if code := a.run(ctx, words(args)); !ok || code != want || out.Len() == 0 {
					t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
				}
			})
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// left makes the record of an event as it is an hour after its handler failed or succeeded, or its consumer died.
func (w *world) left(event, owner string, state dedup.RecordState) {
	w.Helper()
	past := time.Now().Add(-time.Hour)
	until, status := int64(0), "INPROGRESS"
	switch state {
	case dedup.StateCrashed:
		until = past.UnixMilli()
	case dedup.StateCompleted:
		status = "COMPLETED"
	}
	number := func(n int64) ddbtypes.AttributeValue {
		return &ddbtypes.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	must.Get(w.stack.DynamoDB.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String("dedup"), Item: map[string]ddbtypes.AttributeValue{
		"id":                     &ddbtypes.AttributeValueMemberS{Value: consumer + "#orders|" + event},
		"status":                 &ddbtypes.AttributeValueMemberS{Value: status},
		"owner":                  &ddbtypes.AttributeValueMemberS{Value: owner},
		"fence":                  number(past.UnixMilli()),
		"in_progress_expiration": number(until),
		"expiration":             number(time.Now().Add(24 * time.Hour).Unix()),
	}}))(w)
}

// words splits a line as a shell does, with single quotes only.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// Completion works for the four shells and asks AWS nothing: the app has no way to.
func TestCompletion(t *testing.T) {
	run := func(args ...string) string {
		var out strings.Builder
		a := &app{in: strings.NewReader(""), out: &out, err: t.Output(), getenv: func(string) string { return "" }}
		if code := a.run(t.Context(), args); code != exitDone {
			t.Errorf("%q: exit %d", args, code)
		}
		return out.String()
	}
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		if script := run("completion", shell); !strings.Contains(script, "sqsonce") || !strings.Contains(script, "__complete") {
			t.Errorf("%s: %.200s", shell, script)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"record", ""}, "free\t"},
		{[]string{"dlq", "ls", "--"}, "--exit-code\t"},
		{[]string{"dlq", "ls", "--state", ""}, "crashed\n"},
		{[]string{"dlq", "ls", "--queue", ""}, ":4\n"}, // no files
		{[]string{"record", "show", ""}, ":4\n"},
		{[]string{"dlq", "export", ""}, "jsonl\n:8\n"},
		{[]string{"dlq", "restore", ""}, "jsonl\n:8\n"},
		{[]string{"replay", "--archive", ""}, "jsonl\n:8\n"},
		{[]string{"replay", ""}, ":4\n"},
		{[]string{"top", ""}, ":4\n"},
		{[]string{"top", "--worker", ""}, ":4\n"},
		{[]string{"dlq", "delete", "--archive", ""}, "jsonl\n:8\n"},
		{[]string{"dlq", "delete", "--state", ""}, "crashed\n"},
	} {
		if got := run(append([]string{"__complete"}, test.args...)...); !strings.Contains(got, test.want) {
			t.Errorf("%q completes %q, want %q", test.args, got, test.want)
		}
	}
}

// Without credentials nothing is asked, and the exit code says so. With them the SDK writes nothing to the terminal.
func TestNoCredentials(t *testing.T) {
	clearEnvironment(t)
	for name, value := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	if _, err := connect(t.Context()); codeOf(t.Context(), err) != exitDenied {
		t.Errorf("exit %d: %v", codeOf(t.Context(), err), err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "some")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "some")
	if s, err := connect(t.Context()); err != nil || s.sqs.Options().Logger != (logging.Nop{}) || s.cloudwatch.Options().Logger != (logging.Nop{}) {
		t.Errorf("%v, or the SDK logs to the terminal", err)
	}
	t.Setenv("AWS_REGION", "")
	if _, err := connect(t.Context()); codeOf(t.Context(), err) != exitUsage {
		t.Errorf("exit %d: %v", codeOf(t.Context(), err), err)
	}
}

// A result that cannot be written is no success.
func TestBrokenOutput(t *testing.T) {
	bubble(t, func(w *world) {
		a := &app{
			in: strings.NewReader(""), out: closed{}, err: t.Output(), getenv: func(string) string { return "" },
			opts: Options{Store: func(context.Context) (Store, error) { return w.store, nil }},
		}
		if code := a.run(context.Background(), []string{"record", "show", "a#b"}); code != exitFailed {
			t.Errorf("exit %d", code)
		}
	})
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

// The keys and slots of a rule of package limit are records of the consumer limit/ and the rule's name.
func TestRecordsOfLimits(t *testing.T) {
	bubble(t, func(w *world) {
		ctx, counter := context.Background(), dynamostore.NewCounter(w.store)
		must.Get(counter.Take(ctx, counting.Take{Key: "payments#*", N: 1, Step: time.Second, Burst: 1}))(w)
		must.Do(w, counter.Acquire(ctx, "payments#*#0", "worker", time.Minute))
		got := w.run("record", "ls", "--table", "dedup", "--consumer", "limit/payments")
		for _, key := range []string{"limit/payments#*", "limit/payments#*#0"} {
			if show := w.run("record", "show", key, "--table", "dedup"); got.code != 0 || !strings.Contains(got.out, key) || show.code != 0 {
				w.Errorf("%s: ls %+v, show %+v", key, got, show)
			}
		}
	})
}
