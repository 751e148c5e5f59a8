package telemetry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/fifo/outbox/dynamooutbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/otelsqs"
)

// TestDemo runs the demo, with its outage and its kills, under a Prometheus: each query of the dashboard returns data, and the rules
// are evaluated. A collector gets traces and metrics beside it.
func TestDemo(t *testing.T) {
	if os.Getenv("TELEMETRY") == "" {
		t.Skip("takes two minutes: make telemetry runs it")
	}
	testserver.Prometheus.Dir(t) // or skip, before anything is built
	bin := buildDemo(t)
	collector := startCollector(t)
	for name, value := range map[string]string{
		"PROMETHEUS_ADDR": testserver.Host + ":0", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_METRIC_EXPORT_INTERVAL": "5000",
		"STORE": "", "ORDERS": "", "STACK_OUTPUTS": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_SQS": "", "AWS_ENDPOINT_URL_DYNAMODB": "",
	} {
		t.Setenv(name, value)
	}
	rules := must.Get(filepath.Abs(rulesFolder + "rules.yaml"))(t)
	workers := startWorkers(t)
	p := server{begun: time.Now(), url: testserver.StartPrometheus(t, fmt.Sprintf(`global: {scrape_interval: 500ms, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
- {job_name: orders-publisher, static_configs: [{targets: [%q]}]}
%s`, rules, startPublisher(t), workers.config(5)))}

	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "demo"))
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "TMPDIR="+workers.folder)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	must.Do(t, err)
	p.end = time.Now()
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			if target.Expr != "" && !p.hasData(t, target.Expr) { // else it is of CloudWatch
				t.Errorf("panel %q shows nothing: %s", panel.Title, target.Expr)
			}
		}
	}
	if p.hasData(t, "sqsonce_no_such_metric") || p.hasData(t, "0 * sum(sqsonce_worker_limit) / 0") {
		t.Error("data is found where there is none")
	}
	p.checkRules(t)
	for _, path := range []string{"/v1/traces", "/v1/metrics"} {
		if collector.requests(path) == 0 {
			t.Errorf("the collector got nothing at %s", path)
		}
	}
}

// buildDemo builds the demo beside the commands that it runs: the worker is the one with telemetry.
func buildDemo(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for _, args := range [][]string{
		{"build", "-C", "../..", "-tags", "lambda.norpc", "-o", bin + "/", "./orders/demo", "./orders/lambda", "./orders/publish"},
		{"build", "-o", bin + "/", "./worker"},
	} {
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return bin
}

// startPublisher publishes an event ten times a second, and commits another one in an outbox, which a relay publishes, until the test
// ends, and returns where the metrics are served, beside those of a limiter. The demo's own publishers end too soon for a scrape, its
// relays have no telemetry, and its handlers no limits.
func startPublisher(t *testing.T) (addr string) {
	t.Helper()
	var log bytes.Buffer
	tel, _, stop, err := Start(t.Context(), "orders-publisher", slog.New(slog.NewTextHandler(&log, nil)))
	must.Do(t, err)
	addr = serving.FindStringSubmatch(log.String())[1]
	stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) { o.Queues = []localstack.Queue{{Name: "orders.fifo"}} }))(t)
	p := must.Get(fifo.NewPublisher(stack.SQS, stack.QueueURL["orders.fifo"], "orders", tel.Publisher))(t)
	commit, relay := startOutbox(t, stack, p, tel)
	limits := must.Get(limit.New([]limit.Rule{{Name: "publish", Key: limit.All, Plan: limit.Plan{Rate: limit.Rate{N: 10}}}}, tel.Limiter))(t)
	ctx, cancel := context.WithCancel(context.Background())
	published, relayed := make(chan error, 1), make(chan error, 1)
	go func() { relayed <- relay.Run(ctx) }()
	go func() {
		for ctx.Err() == nil {
			if _, err := p.Publish(context.Background(), fifo.Event{ID: rand.Text(), Group: "a", Body: "{}"}); err != nil {
				published <- err
				return
			}
			if err := commit(); err != nil {
				published <- err
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		published <- nil
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-published, <-relayed, p.Close(context.Background()), limits.Close(context.Background()), stop(), stack.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return addr
}

// startOutbox makes an outbox. commit commits an event in it.
func startOutbox(t *testing.T, stack *localstack.Stack, p *fifo.Publisher, tel *otelsqs.Telemetry) (commit func() error, relay *outbox.Relay) {
	t.Helper()
	const table = "outbox"
	must.Do(t, dynamooutbox.CreateTable(t.Context(), stack.DynamoDB, table))
	box := must.Get(dynamooutbox.New(stack.DynamoDB, table, "orders", "orders"))(t)
	relay = must.Get(outbox.NewRelay(box, p, tel.Relay))(t)
	var seq int64
	return func() error {
		seq++
		put, err := box.Put(fifo.Event{ID: fmt.Sprint("committed-", seq), Group: "b", Body: "{}"}, seq)
		if err != nil {
			return err
		}
		_, err = stack.DynamoDB.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: put}}})
		return err
	}, relay
}

// workers serves the metrics of the demo's workers at addresses that are known before: those of the n-th worker that says in its log
// where it serves them are at /n. Prometheus learns of new addresses after seconds only.
type workers struct {
	*httptest.Server
	folder string // the demo's temporary files

	mu    sync.Mutex
	addrs []string
	known map[string]bool // log files
}

func startWorkers(t *testing.T) *workers {
	s := &workers{folder: t.TempDir(), known: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Path[1:])
		addrs := s.find()
		if err != nil || n >= len(addrs) {
			http.Error(w, "not started", http.StatusServiceUnavailable)
			return
		}
		rewrite := func(r *httputil.ProxyRequest) { r.Out.URL = &url.URL{Scheme: "http", Host: addrs[n], Path: "/metrics"} }
		ended := func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
		(&httputil.ReverseProxy{Rewrite: rewrite, ErrorHandler: ended}).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

var serving = regexp.MustCompile(`serving /metrics" addr=(\S+)`)

// find returns the workers' addresses, in the order in which they were found.
func (s *workers) find() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	logs, _ := filepath.Glob(filepath.Join(s.folder, "sqsonce-demo-*", "worker-*.log")) // the pattern is valid
	for _, log := range logs {
		if s.known[log] {
			continue
		}
		text, err := os.ReadFile(log)
		if addr := serving.FindSubmatch(text); err == nil && addr != nil {
			s.known[log], s.addrs = true, append(s.addrs, string(addr[1]))
		}
	}
	return s.addrs
}

// config is the scrape configuration of so many workers.
func (s *workers) config(processes int) (text string) {
	for n := range processes {
		text += fmt.Sprintf("- {job_name: worker-%[1]d, metrics_path: /%[1]d, static_configs: [{targets: [%[2]q], labels: {job: orders-worker, instance: worker-%[1]d}}]}\n",
			n, strings.TrimPrefix(s.URL, "http://"))
	}
	return text
}

// server is a Prometheus, asked for what it has of the demo.
type server struct {
	url        string
	begun, end time.Time
}

// hasData reports whether a panel's query has a number at any time.
func (p server) hasData(t *testing.T, expr string) bool {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "5s", "$service", ".*", "$queue", ".*", "$consumer", ".*").Replace(expr)
	var data struct{ Result []struct{ Values [][2]any } }
	p.ask(t, "query_range?"+url.Values{"query": {expr}, "step": {"0.5"}, "start": {unix(p.begun)}, "end": {unix(p.end)}}.Encode(), &data)
	for _, s := range data.Result {
		for _, v := range s.Values {
			if v[1] != "NaN" {
				return true
			}
		}
	}
	return false
}

func unix(at time.Time) string { return fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000) }

func (p server) checkRules(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	p.ask(t, "rules", &data)
	if len(data.Groups) != 1 || len(data.Groups[0].Rules) != len(readRules(t)) {
		t.Fatalf("rules that are loaded: %+v", data)
	}
	for _, r := range data.Groups[0].Rules {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("rule %s is not evaluated: %+v", r.Name, r)
		}
	}
}

func (p server) ask(t *testing.T, query string, data any) {
	t.Helper()
	answer := struct{ Data any }{data}
	must.Do(t, json.Unmarshal([]byte(get(t, p.url+"/api/v1/"+query)), &answer))
}
