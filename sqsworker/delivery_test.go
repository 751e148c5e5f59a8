package sqsworker

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestTwiceInOneAnswer: one run, and one entry in the batch that deletes it.
func TestTwiceInOneAnswer(t *testing.T) {
	bubble(t, setup{}, func(x *fixture) {
		x.send("a", "b", "c", "d", "e")
		var r runs
		j := x.startWith(receiveFunc{x.c, func(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
			in.MaxNumberOfMessages = max(1, in.MaxNumberOfMessages/2)
			out, err := x.c.ReceiveMessage(ctx, in, o...)
			if err == nil {
				out.Messages = append(out.Messages, out.Messages...)
			}
			return out, err
		}}, r.take(20*time.Second))
		time.Sleep(time.Minute)
		j.stopClean()
		x.wantEmpty()
		if s := j.Stats(); len(r.list()) != 5 || s.LeasesLost != 0 || s.Received != 10 {
			t.Errorf("%v; %+v", r.list(), s)
		}
	})
}
