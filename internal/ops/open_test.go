package ops_test

import (
	"context"
	"errors"
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
		task := must.Get(x.admin.sqs.StartMessageMoveTask(context.Background(), &sqs.StartMessageMoveTaskInput{
			SourceArn: aws.String(arnPrefix + "jobs-dlq"), DestinationArn: aws.String(arnPrefix + "jobs"), MaxNumberOfMessagesPerSecond: aws.Int32(1),
		}))(t)
		refused(x.dlq, ops.ErrMoveTask, "jobs-dlq")
		must.Get(x.admin.sqs.CancelMessageMoveTask(context.Background(), &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle}))(t)
		x.open()
		time.Sleep(time.Minute)
	})
}

// All fields that cannot be used are reported at once.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	bubble(t, setup{}, func(x *fixture) {
		for _, tt := range []struct {
			url    string
			opt    func(*ops.Options)
			fields []string
		}{
			{"jobs-dlq", func(o *ops.Options) {
				o.Store, o.Retention, o.Source = x.store(x.admin), time.Minute, "jobs"
			}, []string{"queue URL", "Options.Key", "Options.Retention", "Options.Source"}},
			{x.dlq, func(o *ops.Options) { o.Source = arnPrefix + "jobs.fifo" }, []string{"Options.Source"}},
			{x.dlq, func(o *ops.Options) { o.Source = arnPrefix + "jobs-dlq" }, []string{"Options.Source"}},
			{x.dlq, func(o *ops.Options) {
				var s inspector
				o.Store, o.Key = s, func(*sqsonce.Message) (string, error) { return "", nil }
			}, []string{"Options.Store"}},
		} {
			_, err := ops.Open(context.Background(), x.looker().sqs, tt.url, tt.opt)
			if err == nil {
				t.Fatalf("%v: no error", tt.fields)
			}
			if n := strings.Count(err.Error(), "ops: "); n != len(tt.fields) {
				t.Errorf("%v: %d problems: %v", tt.fields, n, err)
			}
			for _, f := range tt.fields {
				if !strings.Contains(err.Error(), "ops: "+f+": ") {
					t.Errorf("%s is not in %v", f, err)
				}
			}
			if e, ok := errors.AsType[*sqsonce.OptionError](err); !ok || e.Package != "ops" {
				t.Errorf("%v is no OptionError", err)
			}
		}
		if _, err := ops.Open(context.Background(), nil, x.dlq); err == nil || !strings.Contains(err.Error(), "client") {
			t.Errorf("nil client: %v", err)
		}
	})
}
