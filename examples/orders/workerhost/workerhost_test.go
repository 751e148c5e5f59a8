package workerhost

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/control"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/sqsworker"
)

func TestSettings(t *testing.T) {
	for name, value := range map[string]string{"CONCURRENCY": "7", "VISIBILITY": "40s", "STOP_TIMEOUT": "110s"} {
		t.Setenv(name, value)
	}
	s := must.Get(fromEnv())(t)
	var o sqsworker.Options
	s.apply(&o)
	if o.Concurrency != 7 || o.VisibilityTimeout != 40*time.Second || o.StopTimeout != 110*time.Second {
		t.Errorf("concurrency %d, visibility %s, stop timeout %s; want 7, 40s and 110s", o.Concurrency, o.VisibilityTimeout, o.StopTimeout)
	}
	t.Setenv("STOP_TIMEOUT", "110")
	if _, err := fromEnv(); err == nil || !strings.Contains(err.Error(), "STOP_TIMEOUT") {
		t.Errorf("a duration without unit: %v, want an error that names STOP_TIMEOUT", err)
	}
}

func TestBackoff(t *testing.T) {
	t.Setenv("BACKOFF", "5s")
	s := must.Get(fromEnv())(t)
	var got []time.Duration
	for _, try := range []int{1, 2, 3, 4, 1000} {
		got = append(got, s.doubling()(try))
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if (settings{}).doubling() != nil {
		t.Error("without BACKOFF: got a function, want the worker's default")
	}
}

func TestAskHealth(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-release
		case "/broken":
			http.Error(rw, "the main loop has been blocked", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	defer close(release)
	for path, want := range map[string]string{"/live": "", "/broken": "main loop", "/silent": "Timeout"} {
		err := AskHealth(server.URL + path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want an error about %q", path, err, want)
		}
	}
}

func TestServeHealth(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if stop, err := serveHealth("", nil, log); err != nil {
		t.Errorf("without an address: %v", err)
	} else {
		stop()
	}
	if _, err := serveHealth("127.0.0.1:no-port", nil, log); err == nil || !strings.Contains(err.Error(), "HEALTH_ADDR") {
		t.Errorf("a bad address: %v, want an error that names HEALTH_ADDR", err)
	}
}

// TestPause: the program obeys sqsonce pause, and its status says so.
func TestPause(t *testing.T) {
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
		o.InMemory, o.HTTP, o.Queues, o.Tables = true, true, []localstack.Queue{{Name: "orders"}}, []string{"dedup"}
	}))(t)
	defer func() { must.Do(t, stack.Close(context.Background())) }()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": stack.URL, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "SECRET",
		"QUEUE_URL": stack.QueueURL["orders"], "DEDUP_TABLE": "dedup", "LEDGER_TABLE": "ledger",
	} {
		t.Setenv(name, value)
	}
	store := must.Get(dynamostore.New(stack.DynamoDB, "dedup"))(t)
	seen := must.Get(control.Read(t.Context(), store, "orders"))(t)
	must.Get(control.Set(t.Context(), store, seen, control.State{Paused: true, By: "ann", Reason: "bank is down"}, time.Hour))(t)

	shown, ended := make(chan http.Handler, 1), make(chan error, 1)
	go func() {
		ended <- RunWith(slog.New(slog.DiscardHandler), func(cfg aws.Config, c orders.Config) (sqsonce.Handler, error) {
			return orders.NewHandler(dynamodb.NewFromConfig(cfg), c)
		}, func(h http.Handler) { shown <- h })
	}()
	var h http.Handler
	select {
	case h = <-shown:
	case err := <-ended:
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for got := ""; !strings.Contains(got, `"intake":"paused"`) || !strings.Contains(got, "bank is down"); time.Sleep(10 * time.Millisecond) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/stats", nil))
		if got = strings.ReplaceAll(w.Body.String(), `": "`, `":"`); time.Now().After(deadline) || w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, got)
		}
	}
	must.Do(t, must.Get(os.FindProcess(os.Getpid()))(t).Signal(syscall.SIGTERM))
	must.Do(t, <-ended)
}
