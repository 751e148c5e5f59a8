// Package contestant holds the Go contestants that poll a queue or publish to one: a file for each program. Each runs in
// a process of its own, which gets its job from the environment and its commands over a pipe.
package contestant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/pprof"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/bench/internal/job"
	"github.com/sqsonce/sqsonce/bench/internal/pipe"
)

// runFunc is a contestant's program. A consumer works until ctx ends, and then returns when it would let its process end.
// A publisher returns when its backlog is accepted.
type runFunc func(ctx context.Context, j job.Job, effects *Effects) error

// contestants are all of them, by Job.Contestant: consumers of a queue, publishers to a FIFO queue, and those of an outbox.
var contestants = map[string]runFunc{
	"floor":       floor,
	"floor+http":  floorHTTP,
	"hand":        hand,
	"hand+ddb":    handDDB,
	"gocloud":     gocloudConsumer,
	"sqsonce":     sqsonceWorker,
	"sqsonce+ddb": sqsonceWorkerDDB,

	"fifo:raw":     rawPublisher,
	"fifo:raw16":   rawPublisher,
	"fifo:raw16+a": rawPublisherWithAttributes,
	"fifo:gocloud": gocloudPublisher,
	"fifo:sqsonce": sqsoncePublisher,

	"outbox:publishall": publishAll,
	"outbox:sqsonce":    drainOutbox,
}

// Serve is the main function of a contestant's process. It serves these calls until in ends:
//
//	go     starts the program
//	wait   returns when the program has returned
//	usage  returns the job.Usage since the start
//	stop   cancels the program's context, as SIGTERM would, and returns when the program has returned
func Serve(ctx context.Context, in io.Reader, out io.Writer, j job.Job) error {
	run := contestants[j.Contestant]
	if run == nil {
		return fmt.Errorf("contestant: no contestant %q", j.Contestant)
	}
	p := &program{job: j, run: run, effects: NewEffects(j.Events), returned: make(chan error, 1)}
	return pipe.Serve(in, out, map[string]pipe.Handler{
		"go":    func(json.RawMessage) (any, error) { return nil, p.start(ctx) },
		"wait":  func(json.RawMessage) (any, error) { return nil, <-p.returned },
		"usage": func(json.RawMessage) (any, error) { return p.usage() },
		"stop":  func(json.RawMessage) (any, error) { return nil, p.stop() },
	})
}

// program is the running program of a contestant.
type program struct {
	job      job.Job
	run      runFunc
	effects  *Effects
	meter    job.Meter
	profile  *profile
	cancel   context.CancelFunc
	returned chan error
}

func (p *program) start(ctx context.Context) error {
	var err error
	if p.profile, err = startProfile(p.job.Profile); err != nil {
		return err
	}
	if p.meter, err = job.StartMeter(); err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go func() { p.returned <- p.run(ctx, p.job, p.effects) }()
	return nil
}

func (p *program) usage() (job.Usage, error) {
	u, err := p.meter.Read()
	if err != nil {
		return u, err
	}
	p.effects.Report(&u)
	return u, p.profile.stop()
}

func (p *program) stop() error {
	p.cancel()
	return <-p.returned
}

// profile writes what go tool pprof reads: path.cpu, and path.allocs with every allocation since the process began.
type profile struct {
	path string
	cpu  *os.File // nil: nothing is written, or all is
}

func startProfile(path string) (*profile, error) {
	p := &profile{path: path}
	if path == "" {
		return p, nil
	}
	var err error
	if p.cpu, err = os.Create(path + ".cpu"); err != nil {
		return nil, err
	}
	return p, pprof.StartCPUProfile(p.cpu)
}

// stop writes both files. A second call does nothing.
func (p *profile) stop() error {
	if p.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.cpu.Close()
	p.cpu = nil
	allocs, errCreate := os.Create(p.path + ".allocs")
	if errCreate != nil {
		return errors.Join(err, errCreate)
	}
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close())
}

// httpClient keeps as many idle connections as any contestant can use. The SDK's default is ten per host, and no peer's
// documentation says to raise it. With the default every contestant but ours would spend its time on new connections, and
// the bench would measure that default.
func httpClient() aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = 1024, 2048
	})
}

func sqsClient(j job.Job, c aws.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(j.Endpoint), HTTPClient: c,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("bench", "bench", "")),
	})
}

func dynamodbClient(j job.Job, c aws.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(j.Endpoint), HTTPClient: c,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("bench", "bench", "")),
	})
}

// logger writes warnings and errors to standard error. The bench shows its end where a measurement fails.
func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
