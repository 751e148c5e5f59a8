package scenario

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// cold: how large a function's binary is, and how long its process takes from its start to its first request for an invocation. On
// Lambda a cold start also loads the binary and starts a sandbox. bare-sdk has a client of DynamoDB besides aws-lambda-go.
var cold = Scenario{
	Name:        "cold",
	Contestants: []Contestant{{"bare", 0}, {"bare-sdk", 0}, {"sqsonce", 0}, {"sqsonce-ddb", 0}},
	Latencies:   []time.Duration{0},
	measure: func(ctx context.Context, b *Bench, r run) (report.Row, error) {
		dir, err := os.MkdirTemp("", "cold")
		if err != nil {
			return report.Row{}, err
		}
		defer os.RemoveAll(dir)
		binary := filepath.Join(dir, "bootstrap")
		build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", binary,
			"github.com/sqsonce/sqsonce/bench/internal/cold/"+r.contestant.Name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return report.Row{}, fmt.Errorf("%w: %s", err, out)
		}
		file, err := os.Stat(binary)
		if err != nil {
			return report.Row{}, err
		}
		var took []time.Duration
		for range starts {
			d, err := startFunction(ctx, binary)
			if err != nil {
				return report.Row{}, err
			}
			took = append(took, d)
		}
		slices.Sort(took)
		return report.Row{
			Scenario: r.scenario.Name, Contestant: r.contestant.Name,
			Binary: report.Number(float64(file.Size()) / (1 << 20)), Init: report.Number(took[len(took)/2].Seconds() * 1000),
		}, nil
	},
}

// starts is how often a function is started in a round: the median counts.
const starts = 15

// startFunction returns how long a function's process takes to ask the Runtime API for its first invocation.
func startFunction(ctx context.Context, binary string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	asked := make(chan time.Time, 1)
	api := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/runtime/invocation/next") {
			asked <- time.Now()
		}
		<-ctx.Done() // there is no invocation
	})}
	go func() { _ = api.Serve(listener) }() // until Close
	defer api.Close()
	function := exec.CommandContext(ctx, binary)
	function.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
	var stderr strings.Builder
	function.Stderr = &stderr
	begin := time.Now()
	if err := function.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- function.Wait() }()
	select {
	case at := <-asked:
		cancel()
		<-ended
		return at.Sub(begin), nil
	case err := <-ended:
		return 0, fmt.Errorf("the function ended before it asked for an invocation: %w: %s", err, stderr.String())
	}
}
