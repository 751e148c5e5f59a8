package lambda

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

// stubClient answers at once, and knows a dead-letter queue of any name. before is called first by each call, with the name
// of its operation; its error is the call's.
type stubClient struct {
	before func(ctx context.Context, op string) error
	nils   bool // neither an answer nor an error, as after before's errNil
	most   int  // maxReceiveCount. Default: 1
	// They are called if they are set: before a send, after one that is confirmed, and for a visibility change.
	sending, sent func(body string)
	change        func(handle string, seconds int32)

	mu      sync.Mutex
	changed map[string]int32 // receipt handle to visibility timeout
	urls    int              // answered
	dead    map[string]bool  // bodies
}

func stubbed[T any](ctx context.Context, c *stubClient, op string, answer func() *T) (*T, error) {
	if c.before != nil {
		if err := c.before(ctx, op); err == errNil {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := answer()
	if c.nils {
		return nil, nil
	}
	return out, nil
}

func (c *stubClient) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (c *stubClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return stubbed(ctx, c, opChange, func() *sqs.ChangeMessageVisibilityBatchOutput {
		out := &sqs.ChangeMessageVisibilityBatchOutput{}
		for _, e := range in.Entries {
			if c.changed == nil {
				c.changed = map[string]int32{}
			}
			c.changed[*e.ReceiptHandle] = e.VisibilityTimeout
			if c.change != nil {
				c.change(*e.ReceiptHandle, e.VisibilityTimeout)
			}
			out.Successful = append(out.Successful, sqstypes.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
		}
		return out
	})
}

func (c *stubClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if c.sending != nil {
		c.sending(*in.MessageBody)
	}
	return stubbed(ctx, c, opSend, func() *sqs.SendMessageOutput {
		if c.sent != nil {
			c.sent(*in.MessageBody)
		}
		if c.dead == nil {
			c.dead = map[string]bool{}
		}
		c.dead[*in.MessageBody] = true
		sum := md5.Sum([]byte(*in.MessageBody))
		return &sqs.SendMessageOutput{MessageId: aws.String("copy"), MD5OfMessageBody: aws.String(hex.EncodeToString(sum[:]))}
	})
}

func (c *stubClient) GetQueueAttributes(ctx context.Context, _ *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return stubbed(ctx, c, opAttributes, func() *sqs.GetQueueAttributesOutput {
		policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, standardARN+"-dlq", max(c.most, 1))
		return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"VisibilityTimeout": "180", "RedrivePolicy": policy}}
	})
}

func (c *stubClient) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return stubbed(ctx, c, opURL, func() *sqs.GetQueueUrlOutput {
		c.urls++
		url := "http://sqs.local/000000000000/" + *in.QueueName
		return &sqs.GetQueueUrlOutput{QueueUrl: &url}
	})
}

// counts returns how many messages got their delay, and how many are in the dead-letter queue.
func (c *stubClient) counts() (delayed, dead int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.changed), len(c.dead)
}

const stubDLQ = "http://sqs.local/000000000000/jobs-dlq"

// hangs blocks the calls of an operation for d, and ignores the context.
func hangs(op string, d time.Duration) func(context.Context, string) error {
	return func(_ context.Context, called string) error {
		if called == op {
			time.Sleep(d)
		}
		return nil
	}
}

// TestClientThatIgnoresItsContext: it delays the answer not beyond a quarter of the margin before the deadline, and loses no
// success.
func TestClientThatIgnoresItsContext(t *testing.T) {
	for _, op := range []string{opChange, opURL, opSend, opAttributes} {
		must.Run(t, op, func(t *testing.T) {
			c := &stubClient{before: hangs(op, time.Minute)}
			h := handlers{
				"a1": fails(errTest), "b1": fails(sqsonce.Reject(errTest)),
				"c1": fails(sqsonce.ErrInProgress), "d1": takes(3 * time.Second),
			}
			f := wrap(t, h.handle, func(o *Options) { o.Client, o.DeadLetterQueue = c, stubDLQ })
			begun := time.Now()
			got := invoke(t, f, timeout(t, 10*time.Second), fifoBatch("a1", "b1", "c1", "d1"))
			if took := time.Since(begun); took > 10*time.Second-125*time.Millisecond {
				t.Errorf("answered after %v, want at most 9.875s", took)
			}
			if strings.Contains(got, "d1") || !strings.Contains(got, "c1") {
				t.Errorf("failed %q, want c1 and not d1", got)
			}
			time.Sleep(time.Hour) // the calls return: the bubble ends only when every goroutine has
		})
	}
}

// TestDelaysUseTheTime: the visibility changes of a large batch go on while there is time, ten calls at once however many
// handlers may run at once.
func TestDelaysUseTheTime(t *testing.T) {
	for _, concurrency := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			c := &stubClient{before: hangs(opChange, 100*time.Millisecond)}
			f := wrap(t, fails(errTest), func(o *Options) { o.Client, o.Concurrency = c, concurrency })
			invoke(t, f, timeout(t, 50*time.Second), batch(numbered(10_000)...))
			if got, _ := c.counts(); got != 10_000 {
				t.Errorf("%d of 10,000 messages got their delay", got)
			}
		})
	}
}

// TestDelaysStopWithSQS: after a call that was not answered in time no more are made. The log says it in one line.
func TestDelaysStopWithSQS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		calls := 0
		c := &stubClient{}
		c.before = func(ctx context.Context, op string) error {
			if op != opChange {
				return nil
			}
			c.mu.Lock()
			calls++
			c.mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		}
		f := wrap(t, fails(errTest), func(o *Options) { o.Client, o.Logger = c, book.logger() })
		begun := time.Now()
		invoke(t, f, timeout(t, 5*time.Minute), batch(numbered(1000)...))
		if took := time.Since(begun); took != callTimeout || calls != changesAtOnce {
			t.Errorf("%d calls in %v, want %d in %v", calls, took, changesAtOnce, callTimeout)
		}
		if got := book.count("the invocation's time ends"); got != 1 {
			t.Errorf("%d lines, want 1:\n%s", got, &book)
		}
	})
}

// TestTooManyAbandoned: beyond Options.Abandoned no handler is started, and the error ends the process. Successes of the
// invocation that went beyond it are not lost.
func TestTooManyAbandoned(t *testing.T) {
	for _, tt := range []struct {
		name   string
		option int
		ids    []string // "s": stuck
		errors []bool   // of the invocations with these records
		starts int      // so many invocations start handlers
	}{
		{"as many as allowed", 2, []string{"s1", "s2"}, []bool{false, true, true}, 2},
		{"a success is kept", 2, []string{"s1", "s2", "s3", "ok"}, []bool{false, true, true}, 1},
		{"nothing succeeded", 2, []string{"s1", "s2", "s3"}, []bool{true, true}, 1},
		{"the default is 10 x Concurrency", 0, []string{"s1", "s2", "s3", "ok"}, append(make([]bool, 14), true), 14},
		{"no limit", -1, []string{"s1", "s2", "s3", "s4"}, make([]bool, 20), 20},
	} {
		must.Run(t, tt.name, func(t *testing.T) {
			var r runs
			f := wrap(t, r.wrap(func(_ context.Context, m *sqsonce.Message) error {
				if m.ID[0] == 's' {
					time.Sleep(24 * time.Hour)
				}
				return nil
			}), func(o *Options) { o.Abandoned, o.Concurrency = tt.option, 4 })
			for i, want := range tt.errors {
				before := r.count()
				_, err := f(timeout(t, 10*time.Second), batch(tt.ids...))
				end, isExit := errors.AsType[messages.InvokeResponse_Error](err)
				if got := isExit && end.ShouldExit; got != want || (err != nil) != want {
					t.Errorf("invocation %d: error %v, want one that ends the process: %t", i, err, want)
				}
				if started := r.count() > before; started != (i < tt.starts) {
					t.Errorf("invocation %d started handlers: %t", i, started)
				}
			}
			time.Sleep(48 * time.Hour)
			if _, err := f(timeout(t, 10*time.Second), batch("ok")); err != nil {
				t.Errorf("after the handlers have returned: %v", err)
			}
		})
	}
}

// TestAbandonedCallsCount: calls of the client that ignore their context are bounded as handlers are.
func TestAbandonedCallsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &stubClient{before: hangs(opChange, time.Hour)}
		f := wrap(t, handlers{"1": fails(errTest)}.handle, func(o *Options) { o.Client, o.Abandoned = c, 1 })
		for i, want := range []bool{false, false, true} {
			if _, err := f(timeout(t, 10*time.Second), batch("1", "2")); (err != nil) != want {
				t.Errorf("invocation %d: error %v, want one: %t", i, err, want)
			}
		}
		time.Sleep(2 * time.Hour)
		invoke(t, f, timeout(t, 10*time.Second), batch("2"))
	})
}

// TestTooManyAbandonedEndTheProcess: Lambda gets the error of the invocation, and then the process ends with status 1.
func TestTooManyAbandonedEndTheProcess(t *testing.T) {
	t.Parallel()
	payload := `{"Records":[` + strings.Join([]string{stuckRecord("1"), stuckRecord("2")}, ",") + `]}`
	posted := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			posted <- r.URL.Path + " " + string(body)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(3*time.Second).UnixMilli()))
		fmt.Fprint(w, payload)
	}))
	defer api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), mode+"=stuck", "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(api.URL, "http://"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("got %v, want status 1:\n%s", err, out)
	}
	select {
	case got := <-posted:
		if !strings.HasPrefix(got, "/2018-06-01/runtime/invocation/1/error") || !strings.Contains(got, "TooManyAbandoned") {
			t.Errorf("got %s, want the error", got)
		}
	default:
		t.Errorf("the process reported nothing:\n%s", out)
	}
}

func stuckRecord(id string) string {
	return fmt.Sprintf(`{"messageId":%q,"eventSource":"aws:sqs","eventSourceARN":%q}`, id, standardARN)
}
