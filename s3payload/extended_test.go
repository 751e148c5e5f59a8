package s3payload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/s3payload"
)

// unicode is a body of more than one and less than two MiB, with characters of one to four bytes.
var unicode = strings.Repeat("aé€😀\n", 1<<17)

// moto is a bucket and a queue of moto, each with the name of the test.
type moto struct {
	*testing.T
	url    string
	s3     *s3.Client
	sqs    *sqs.Client
	bucket string
	queue  string
}

func newMoto(t *testing.T, name string) *moto {
	t.Helper()
	m := &moto{T: t, url: testserver.Moto.Shared(t).URL, bucket: name}
	m.s3 = s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &m.url, UsePathStyle: true, Credentials: testaws.Credentials})
	m.sqs = sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &m.url, Credentials: testaws.Credentials})
	must.Get(m.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &m.bucket}))(t)
	out := must.Get(m.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}))(t)
	m.queue = *out.QueueUrl
	return m
}

func (m *moto) publish(e fifo.Event) {
	m.Helper()
	p := must.Get(fifo.NewPublisher(m.sqs, m.queue, "orders"))(m)
	large := must.Get(s3payload.NewPublisher(p, m.s3, m.bucket))(m)
	must.Get(large.Publish(m.Context(), e))(m)
}

// receive returns a message of the queue as Resolve's handler gets it.
func (m *moto) receive() *sqsonce.Message {
	m.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		out := must.Get(m.sqs.ReceiveMessage(m.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &m.queue, MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 5,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"All"},
		}))(m)
		if len(out.Messages) > 0 {
			return m.resolve(messageOf(out.Messages[0]))
		}
	}
	m.Fatal("no message in a minute")
	return nil
}

func (m *moto) resolve(received *sqsonce.Message) (got *sqsonce.Message) {
	m.Helper()
	h, err := s3payload.Resolve(func(_ context.Context, m *sqsonce.Message) error { got = m; return nil }, m.s3, []string{m.bucket})
	if err == nil {
		err = h(m.Context(), received)
	}
	if err != nil {
		m.Fatal(err)
	}
	return got
}

// extendedClients return the command of a program that sends and receives with AWS's extended client.
var extendedClients = map[string]func(t *testing.T) []string{
	"Python": func(t *testing.T) []string {
		return []string{testserver.ExtendedClient.Interpreter(t), "testdata/client.py"}
	},
	"Java": func(t *testing.T) []string {
		jars := filepath.Join(testserver.ExtendedClientJava.Dir(t), "lib", "*")
		return []string{"java", "-Xmx256m", "-cp", jars, "testdata/Client.java"}
	},
}

// run runs the program of an extended client.
func (m *moto) run(client []string, stdin string, args ...string) []byte {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), client[0], slices.Concat(client[1:], args)...)
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+m.url, "AWS_DEFAULT_REGION=us-east-1", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "PYTHONUTF8=1")
	cmd.Stdin = strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.Fatalf("%v: %v\n%s", args, err, stderr.Bytes())
	}
	return out
}

func TestMoto(t *testing.T) {
	t.Parallel()
	m := newMoto(t, "ours")
	m.publish(fifo.Event{ID: "1", Body: unicode})
	if got := m.receive(); got.Body != unicode || got.Attributes[sqsonce.AttrEventID].String != "1" || len(got.Attributes) != 2 {
		t.Errorf("%d bytes with attributes %v, want the body that was published and event-id and event-source", len(got.Body), got.Attributes)
	}
	// What an S3 of others answers.
	h := must.Get(s3payload.Resolve(func(context.Context, *sqsonce.Message) error { return nil }, m.s3, []string{m.bucket, "none"}))(t)
	if err := h(t.Context(), pointerTo(m.bucket, "none")); !errors.Is(err, s3payload.ErrNoObject) {
		t.Errorf("missing object: %v, want ErrNoObject", err)
	}
	if err := h(t.Context(), pointerTo("none", "k")); !errors.Is(err, sqsonce.ErrMisconfigured) || sqsonce.OutcomeOf(err).Kind != sqsonce.OutcomeUnavailable {
		t.Errorf("missing bucket: %v, want ErrMisconfigured", err)
	}
}

func TestExtendedClientReceives(t *testing.T) {
	t.Parallel()
	for name, command := range extendedClients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, m := command(t), newMoto(t, "receives-"+strings.ToLower(name))
			m.publish(fifo.Event{ID: "1", Type: "paid", Body: unicode})
			var got struct {
				Body       string
				Attributes map[string]struct{ StringValue string }
			}
			must.Do(t, json.Unmarshal(m.run(client, "", "receive", m.queue, m.bucket), &got))
			if got.Body != unicode || got.Attributes["event-id"].StringValue != "1" || got.Attributes["event-type"].StringValue != "paid" || len(got.Attributes) != 3 {
				t.Errorf("%d bytes with attributes %v, want the body that was published and three attributes", len(got.Body), got.Attributes)
			}
			out := must.Get(m.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &m.queue, AttributeNames: []sqstypes.QueueAttributeName{"All"}}))(t)
			if a := out.Attributes; a["ApproximateNumberOfMessages"] != "0" || a["ApproximateNumberOfMessagesNotVisible"] != "0" {
				t.Errorf("queue %v, want it empty: the client deleted the message", a)
			}
			if objects, err := m.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &m.bucket}); err != nil || aws.ToInt32(objects.KeyCount) != 1 {
				t.Errorf("%d objects and error %v, want that of the message", aws.ToInt32(objects.KeyCount), err)
			}
		})
	}
}

func TestExtendedClientSends(t *testing.T) {
	t.Parallel()
	for name, command := range extendedClients {
		for _, names := range []string{"present", "legacy"} {
			t.Run(name+"/"+names, func(t *testing.T) {
				t.Parallel()
				client, m := command(t), newMoto(t, fmt.Sprint("sends-", strings.ToLower(name), "-", names))
				m.run(client, unicode, "send", m.queue, m.bucket, names)
				if got := m.receive(); got.Body != unicode || got.Attributes["event-id"].String != "1" || len(got.Attributes) != 1 {
					t.Errorf("%d bytes with attributes %v, want the body that was sent and event-id", len(got.Body), got.Attributes)
				}
			})
		}
	}
}
