package sqsworker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestEntryResults(t *testing.T) {
	t.Parallel()
	failed := []sqstypes.BatchResultErrorEntry{
		{Id: aws.String("2"), Code: aws.String("InternalError"), Message: aws.String("Value handle-2 for parameter ReceiptHandle is invalid.")}, {Id: aws.String("99")},
	}
	got := newResults(4, nil)
	for _, id := range []*string{aws.String("1"), nil, aws.String("x"), aws.String("-1")} {
		got.succeeded(id)
	}
	got.failed(failed, func(i int) string { return fmt.Sprint("handle-", i) })
	if text := got[2].Error(); strings.Contains(text, "handle-2") || !strings.Contains(text, "is invalid") {
		t.Errorf("error %q, want SQS's text without the handle", text)
	}
	if got[1] != nil || errorCode(got[2]) != "InternalError" {
		t.Errorf("answered entries: %v", got)
	}
	if !errors.Is(got[0], errMissing) || !errors.Is(got[3], errMissing) {
		t.Errorf("entries that the answer does not name: got %v, want errors", got)
	}
	for _, err := range newResults(2, errTest) {
		if !errors.Is(err, errTest) {
			t.Errorf("failed call: %v", err)
		}
	}
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	q := batchQueue{pending: make([]*delivery, 3), inCalls: 2}
	if n := q.unanswered(); n != 5 {
		t.Errorf("%d, want those that wait to be sent and those in calls", n)
	}
	q.slow.failures = 1
	if n := q.unanswered(); n != 2 {
		t.Errorf("while calls fail: %d, want those in calls only: the others wait for a retry", n)
	}
}

// A stop waits for flushTimeout only, and tries again at least ten times meanwhile.
func TestRetriesOfAStop(t *testing.T) {
	t.Parallel()
	var l loop
	if most := l.retryLimit(); most != 5*time.Second {
		t.Errorf("waits up to %s for a retry, want 5s", most)
	}
	l.stopping.begun = true
	if most := l.retryLimit(); most > flushTimeout/10 {
		t.Errorf("waits up to %s for a retry in a stop of %s", most, flushTimeout)
	}
}
