package ops_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		refused := func(url string, want error, queue string) {
			t.Helper()
			_, err := ops.Open(context.Background(), x.looker().sqs, url)
			if r, ok := errors.AsType[*ops.RefusedError](err); !ok || !errors.Is(err, want) || r.Queue != arnPrefix+queue || !strings.Contains(err.Error(), queue) {
				t.Errorf("%s: %v, want %v", url, err, want)
			}
		}
		refused(x.url, ops.ErrNotDeadLetter, "jobs")
		if _, err := ops.Open(context.Background(), x.looker().sqs, x.url, func(o *ops.Options) { o.NotDeadLetter = true }); err != nil {
			t.Errorf("with NotDeadLetter: %v", err)
		}
		if _, err := ops.Open(context.Background(), x.looker().sqs, x.url+"-none"); err == nil || !strings.Contains(err.Error(), "sqs:GetQueueAttributes of "+x.url+"-none") {
			t.Errorf("no such queue: %v", err)
		}

		x.fill(3)
		task := x.startMove()
		refused(x.dlq, ops.ErrMoveTask, "jobs-dlq")
		must.Get(x.admin.sqs.CancelMessageMoveTask(context.Background(), &sqs.CancelMessageMoveTaskInput{TaskHandle: task}))(t)
		refused(x.dlq, ops.ErrMoveTask, "jobs-dlq") // it is not yet cancelled
		time.Sleep(time.Minute)
		x.open()
	})
}

// All that flags say and that cannot be used is reported at once.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		for _, tt := range []struct {
			opt    func(*ops.Options)
			fields []string
		}{
			{func(o *ops.Options) { o.Hold, o.Retention, o.Source = time.Second, time.Minute, "jobs" }, []string{"Options.Hold", "Options.Retention", "Options.Source"}},
			{func(o *ops.Options) { o.Source = arnPrefix + "jobs.fifo" }, []string{"Options.Source"}},
			{func(o *ops.Options) { o.Source = arnPrefix + "jobs-dlq" }, []string{"Options.Source"}},
			{hold(13 * time.Hour), []string{"Options.Hold"}},
		} {
			_, err := ops.Open(context.Background(), x.looker().sqs, x.dlq, tt.opt)
			if e, ok := errors.AsType[*sqsonce.OptionError](err); !ok || e.Package != "ops" || strings.Count(err.Error(), "ops: ") != len(tt.fields) {
				t.Errorf("%v: %v", tt.fields, err)
			}
			for _, f := range tt.fields {
				if err != nil && !strings.Contains(err.Error(), "ops: "+f+": ") {
					t.Errorf("%s is not in %v", f, err)
				}
			}
		}
	})
}

// An operation that receives refuses a queue out of which that moves messages, and each one a queue from which a task moves them.
func TestRefusedQueues(t *testing.T) {
	t.Parallel()
	type operation = func(d *ops.DLQ, file string) error
	restored := strings.ReplaceAll(archiveHead+archiveLine, ".fifo", "")
	for name, do := range map[string]operation{
		"List":    func(d *ops.DLQ, _ string) error { _, err := d.List(context.Background(), 0); return err },
		"Redrive": func(d *ops.DLQ, _ string) error { _, err := d.Redrive(context.Background(), noCanary); return err },
		"Export":  func(d *ops.DLQ, file string) error { _, err := d.Export(context.Background(), file); return err },
		"Delete":  func(d *ops.DLQ, file string) error { _, err := d.Delete(context.Background(), file); return err },
		"Restore": func(d *ops.DLQ, _ string) error {
			_, err := d.Restore(context.Background(), strings.NewReader(restored))
			return err
		},
		"Replay": func(d *ops.DLQ, _ string) error {
			_, err := d.Replay(context.Background(), &ops.Message{Message: sqsonce.Message{ID: "1", ReceiptHandle: "1"}}, note)
			return err
		},
	} {
		for _, want := range []error{ops.ErrChained, ops.ErrMoveTask} {
			if want == ops.ErrChained && name == "Restore" || want == ops.ErrMoveTask && name == "List" {
				continue
			}
			bubble(t, setup{}, func(x *fixture) {
				x.fill(3)
				d := x.redriver()
				if want == ops.ErrChained {
					x.create("last", nil)
					x.set(x.dlq, x.redrive("last", 99))
					d = x.redriver()
				} else {
					x.startMove()
				}
				err := do(d, filepath.Join(x.TempDir(), "archive"))
				if r, ok := errors.AsType[*ops.RefusedError](err); !ok || !errors.Is(err, want) || r.Operation != name || r.Queue != arnPrefix+"jobs-dlq" {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
				for _, m := range x.sqs.Messages(x.dlq) {
					if m.ReceiveCount != 0 {
						t.Errorf("%s: refused after a receive", name)
					}
				}
				if want == ops.ErrChained && name != "Replay" {
					if err := do(x.redriver(spend), filepath.Join(x.TempDir(), "archive")); err != nil {
						t.Errorf("%s, where receives may be spent: %v", name, err)
					}
				}
				time.Sleep(time.Minute) // the task ends
			})
		}
	}
}

// startMove starts a task of SQS's own that moves a message a second to the source.
func (x *fixture) startMove() *string {
	x.Helper()
	task := must.Get(x.admin.sqs.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String(arnPrefix + "jobs-dlq"), DestinationArn: aws.String(arnPrefix + "jobs"), MaxNumberOfMessagesPerSecond: aws.Int32(1),
	}))(x)
	return task.TaskHandle
}
