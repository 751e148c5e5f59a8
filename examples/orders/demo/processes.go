package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

const (
	// functionTimeout is longer than a manual review and the outage after it: until then a record can be completed.
	functionTimeout = 24 * time.Second
	// queueVisibility is the queues' visibility timeout. The mapping receives with it, and has no option for another. A function
	// whose store is away gives its messages back with it, since it has no client of SQS: with one it would delay them for a
	// minute, and those that were received before for four.
	queueVisibility = 27 * time.Second
	batchSize       = 10
	// A relay that is killed keeps its claims for so long, on PostgreSQL and MariaDB.
	relayLease      = 10 * time.Second
	relayPoll       = 200 * time.Millisecond
	consumer        = "orders" // name in the records
	concurrentCalls = 2        // of each function: the least MaximumConcurrency of a mapping
)

// processes are the commands that the demo runs: workers, publishers and functions.
type processes struct {
	bin, dir   string
	stack      *stack
	workers    []*process
	publishers []*process
	relays     []*process
	functions  *functions
	failed     chan error // receives the failure of a process that the demo did not kill
}

func newProcesses(bin, dir string, s *stack) *processes {
	return &processes{bin: bin, dir: dir, stack: s, failed: make(chan error, 16)}
}

// process is a running command.
type process struct {
	name, queue string
	cmd         *exec.Cmd
	log         string
	exited      chan struct{} // closed when the process has exited; err is set then
	err         error
	killed      atomic.Bool // set before the demo kills it
}

func (p *processes) callsFile() string { return filepath.Join(p.dir, "calls") }

func (p *processes) startWorker(queue string) error {
	w, err := p.start([]string{p.stack.backend.worker}, queue)
	if err == nil {
		p.workers = append(p.workers, w)
	}
	return err
}

func (p *processes) startPublisher(l *load) error {
	publisher, err := p.start(p.stack.backend.publisher, l.queue, "FILE="+l.file, "NAMESPACE=orders", "RESEND=10", "RETRY=5")
	if err == nil {
		p.publishers = append(p.publishers, publisher)
	}
	return err
}

// startRelay starts a relay of the queue's outbox.
func (p *processes) startRelay(queue string) error {
	r, err := p.start(p.stack.backend.relay, queue)
	if err == nil {
		p.relays = append(p.relays, r)
	}
	return err
}

func (p *processes) start(command []string, queue string, env ...string) (*process, error) {
	one := &process{name: strings.Join(command, " "), queue: queue, exited: make(chan struct{})}
	one.cmd = exec.Command(filepath.Join(p.bin, command[0]), command[1:]...)
	one.cmd.Env = append(append(os.Environ(), p.environment(queue)...), env...)
	log, err := os.CreateTemp(p.dir, command[0]+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has a copy of the descriptor
	one.log, one.cmd.Stdout, one.cmd.Stderr = log.Name(), log, log
	if err := one.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		one.err = one.cmd.Wait()
		close(one.exited)
		if one.err != nil && !one.killed.Load() {
			p.failed <- one.failure()
		}
	}()
	return one, nil
}

// failure is the error of a process that has exited, with the end of its log.
func (p *process) failure() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return errors.Join(p.err, err)
	}
	return fmt.Errorf("%s of %s: %w\n%s", p.name, p.queue, p.err, text[max(0, len(text)-2000):])
}

// killWorker kills a worker of the queue with SIGKILL: it finishes nothing, as in a crash.
func (p *processes) killWorker(queue string) (pid int, err error) { return kill(&p.workers, queue) }

// killRelay kills a relay of the queue in the same way.
func (p *processes) killRelay(queue string) (pid int, err error) { return kill(&p.relays, queue) }

func kill(all *[]*process, queue string) (pid int, err error) {
	i := slices.IndexFunc(*all, func(one *process) bool { return one.queue == queue })
	if i < 0 {
		return 0, fmt.Errorf("nothing of %s to kill", queue)
	}
	one := (*all)[i]
	*all = slices.Delete(*all, i, i+1)
	one.killed.Store(true)
	if err := one.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	<-one.exited
	return one.cmd.Process.Pid, nil
}

// waitUntilStarted waits until a worker or a relay runs: before it listens for signals, SIGTERM kills it.
func (p *process) waitUntilStarted(ctx context.Context) {
	for ctx.Err() == nil {
		if text, err := os.ReadFile(p.log); err != nil || strings.Contains(string(text), "sqsworker: started") || strings.Contains(string(text), "relay started") {
			return
		}
		select {
		case <-p.exited:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop sends SIGTERM to the workers and relays and waits for all processes. Each must exit with status 0.
func (p *processes) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	running := slices.Concat(p.workers, p.relays)
	for _, w := range running {
		w.waitUntilStarted(ctx)
		if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	for _, one := range append(running, p.publishers...) {
		select {
		case <-one.exited:
			if one.err != nil {
				return one.failure()
			}
		case <-ctx.Done():
			return fmt.Errorf("%s of %s did not exit: %w", one.name, one.queue, ctx.Err())
		}
	}
	p.workers, p.publishers, p.relays = nil, nil, nil
	f := p.functions
	p.functions = nil
	if f == nil {
		return nil
	}
	return f.stop(ctx)
}

// killAll kills every process that still runs, however the demo ends.
func (p *processes) killAll() {
	if p.functions != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.functions.stop(ended) // the demo has failed already, with the first error
	}
	for _, one := range slices.Concat(p.workers, p.publishers, p.relays) {
		one.killed.Store(true)
		_ = one.cmd.Process.Kill() // fails where the process has exited
		<-one.exited
	}
}

// environment is the configuration of the commands.
func (p *processes) environment(queue string) []string {
	env := []string{
		"QUEUE_URL=" + p.stack.QueueURL[queue], "DLQ_URL=" + p.stack.QueueURL[p.stack.names.dlq(queue)],
		"DEDUP_TABLE=" + p.stack.names.dedup, "LEDGER_TABLE=" + p.stack.names.ledger, "CONSUMER=" + consumer,
		"CALLS=" + p.callsFile(), "CONCURRENCY=" + strconv.Itoa(concurrency),
		"ORDERS_TABLE=" + p.stack.names.orders, "OUTBOX_TABLE=" + p.stack.names.outbox, "OUTBOX=" + queue,
		"POLL=" + relayPoll.String(), "RELAY_LEASE=" + relayLease.String(),
		"VISIBILITY=" + visibility.String(), "LEASE=" + lease.String(), "BACKOFF=" + longestBackoff.String(),
	}
	if p.stack.deployed { // the credentials and endpoints of the demo itself
		return append(env, "STORE=")
	}
	if queue == p.stack.names.standard {
		env = append(env, "UNKNOWN_SKUS="+p.unknownFile())
	}
	return slices.Concat(env, []string{
		"AWS_ENDPOINT_URL_SQS=" + p.stack.counter.url,
		"AWS_ENDPOINT_URL_DYNAMODB=" + p.stack.dynamoURL(),
		"AWS_REGION=" + cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
		"AWS_ACCESS_KEY_ID=" + cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"),
		"AWS_SECRET_ACCESS_KEY=" + cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"),
		"AWS_EC2_METADATA_DISABLED=true",
	}, p.stack.storeEnv())
}

// functions are the Lambda functions, one for each queue: the compiled bootstrap behind an event source mapping.
type functions struct {
	byQueue  map[string]*runtimeapi.Function
	cancel   context.CancelFunc // ends the mappings
	mappings errgroup.Group
	log      *os.File
}

// startFunctions starts the functions and their mappings. Where it fails killAll stops those that were started.
func (p *processes) startFunctions(ctx context.Context, in *input) error {
	log, err := os.Create(filepath.Join(p.dir, "functions.log"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &functions{byQueue: map[string]*runtimeapi.Function{}, cancel: cancel, log: log}
	p.functions = f
	client := p.client()
	for _, l := range in.loads {
		function, err := runtimeapi.Start(ctx, filepath.Join(p.bin, p.stack.backend.function), func(o *runtimeapi.Options) {
			o.Env = p.environment(l.queue)
			o.Timeout = functionTimeout
			o.Processes = concurrentCalls
			o.Stdout, o.Stderr = log, log
		})
		if err != nil {
			return err
		}
		f.byQueue[l.queue] = function
		f.mappings.Go(func() error {
			return esm.Run(ctx, client, esm.Config{
				QueueURL:                p.stack.QueueURL[l.queue],
				BatchSize:               batchSize,
				MaximumConcurrency:      concurrentCalls,
				FunctionTimeout:         functionTimeout,
				InvokerTimesOut:         true,
				ReportBatchItemFailures: true,
				Wait:                    2 * time.Second,
				Logger:                  slog.New(slog.NewTextHandler(log, nil)),
			}, function.Invoke)
		})
	}
	return nil
}

// client is a client of SQS whose requests are counted.
func (p *processes) client() *sqs.Client {
	o := p.stack.SQS.Options()
	return sqs.New(sqs.Options{Region: o.Region, Credentials: o.Credentials, BaseEndpoint: aws.String(p.stack.counter.url)})
}

// kill kills a process of the queue's function with SIGKILL, in the middle of an invocation if there is one.
func (f *functions) kill(queue string) (pid int, err error) {
	pid, err = f.byQueue[queue].KillOne()
	if err != nil {
		err = fmt.Errorf("function of %s: %w", queue, err)
	}
	return pid, err
}

// stop ends the mappings, which first finish the messages that they have received, and then the functions.
func (f *functions) stop(ctx context.Context) error {
	f.cancel()
	errs := []error{f.mappings.Wait()}
	for _, function := range f.byQueue {
		errs = append(errs, function.Close(ctx))
	}
	return errors.Join(append(errs, f.log.Close())...)
}
