package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/must"
)

// A reset whose client disconnects creates everything again. After the end there is none, since its functions would outlive localaws.
func TestResetToTheEnd(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	o := must.Get(parse([]string{"-queues", "jobs"}, io.Discard))(t)
	w := newWorld(o, "http://"+server.Listener.Addr().String(), io.Discard)
	defer w.close()
	server.Config.Handler = w.handler()
	server.Start()
	defer server.Close()
	must.Do(t, w.load())
	must.Do(t, w.begin(t.Context()))

	disconnected, cancel := context.WithCancel(t.Context())
	cancel()
	reset := func() int {
		answer := httptest.NewRecorder()
		w.reset(answer, httptest.NewRequestWithContext(disconnected, http.MethodPost, "/_localaws/reset", nil))
		return answer.Code
	}
	if got := reset(); got != http.StatusNoContent || !w.ready.Load() {
		t.Errorf("reset: %d, ready %t", got, w.ready.Load())
	}
	must.Get(w.sqsClient().GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")}))(t)
	w.end()
	if got := reset(); got == http.StatusNoContent || w.functions.all != nil {
		t.Errorf("reset after the end: %d, functions %v", got, w.functions.all)
	}
}
