package memsqs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

const (
	notInFlight  = "AWS.SimpleQueueService.MessageNotInflight"
	invalidValue = "InvalidParameterValue"
	badHandle    = "ReceiptHandleIsInvalid"
)

func TestForeignHandles(t *testing.T) {
	standard(t, func(x *fixture) {
		x.send("a")
		m := x.want("a")[0]
		own := x.url
		x.url = x.create("other", nil)
		x.code(x.delete(m), badHandle)
		x.code(x.visibility(m, 1), badHandle)
		x.url = own
		for _, h := range []string{"garbage", *m.ReceiptHandle + "AAAA", "A" + (*m.ReceiptHandle)[1:], (*m.ReceiptHandle)[:len(*m.ReceiptHandle)-4], (*m.ReceiptHandle)[:30] + "7" + (*m.ReceiptHandle)[31:]} {
			if h == *m.ReceiptHandle {
				h = "B" + h[1:]
			}
			bad := types.Message{ReceiptHandle: aws.String(h)}
			x.code(x.delete(bad), badHandle)
			err := x.visibility(bad, 1)
			x.code(err, badHandle)
			if _, ok := errors.AsType[*types.ReceiptHandleIsInvalid](err); !ok {
				x.Errorf("got %T, want ReceiptHandleIsInvalid", err)
			}
		}
		x.ok(x.delete(m))
	})
}

// What AWS was recorded to answer, and the errors that Options.StrictHandles gives instead. On a FIFO queue they are the same.
func TestHandlesOfOldReceives(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		for kind, queue := range map[string]func(*testing.T, func(*fixture), ...func(*memsqs.Options)){"standard": standard, "fifo": fifo} {
			server := func(f func(x *fixture)) func(*testing.T) {
				return func(t *testing.T) { queue(t, f, func(o *memsqs.Options) { o.StrictHandles = strict }) }
			}
			put := func(x *fixture) {
				if kind == "fifo" {
					x.send("a", "group")
				} else {
					x.send("a")
				}
			}
			name := fmt.Sprintf("%s, strict=%t/", kind, strict)
			t.Run(name+"expired", server(func(x *fixture) {
				put(x)
				m := x.want("a")[0]
				time.Sleep(30 * time.Second)
				err := x.visibility(m, 100)
				if _, ok := errors.AsType[*types.MessageNotInflight](err); ok != strict || (err != nil) != strict {
					x.Errorf("got %v, want MessageNotInflight: %t", err, strict)
				}
				if strict {
					x.code(err, notInFlight)
				}
				x.want("a") // it is not hidden again
			}))
			t.Run(name+"superseded", server(func(x *fixture) {
				put(x)
				first := x.want("a")[0]
				x.ok(x.visibility(first, 0))
				x.want("a")
				if !strict {
					x.ok(x.visibility(first, 5)) // of the latest receive
					time.Sleep(5*time.Second - 1)
					x.want()
					time.Sleep(time.Nanosecond)
					x.want("a")
					return
				}
				x.code(x.visibility(first, 0), invalidValue)
				x.want()
			}))
			t.Run(name+"superseded, and the latest receive has expired", server(func(x *fixture) {
				put(x)
				first := x.want("a")[0]
				x.ok(x.visibility(first, 0))
				x.want("a")
				time.Sleep(30 * time.Second)
				if err := x.visibility(first, 100); (err != nil) != strict {
					x.Errorf("got %v, want an error: %t", err, strict)
				}
				x.want("a")
			}))
			t.Run(name+"in a batch", server(func(x *fixture) {
				put(x)
				m := x.want("a")[0]
				time.Sleep(30 * time.Second)
				out, err := x.c.ChangeMessageVisibilityBatch(x.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &x.url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
					{Id: aws.String("1"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 100},
				}})
				x.ok(err)
				if failed := len(out.Failed) == 1; failed != strict || len(out.Successful)+len(out.Failed) != 1 {
					x.Errorf("%d successful, %d failed, want a failure: %t", len(out.Successful), len(out.Failed), strict)
				}
				x.want("a")
			}))
			// AWS was not recorded to forgive this.
			t.Run(name+"deleted", server(func(x *fixture) {
				put(x)
				m := x.want("a")[0]
				x.ok(x.delete(m))
				x.code(x.visibility(m, 0), invalidValue)
			}))
		}
	}
}
