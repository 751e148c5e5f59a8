package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/examples/orders"
)

// crashed is the order whose worker dies while a person reviews it.
const crashed = "ord-10001"

// crash leaves the order in the dead-letter queue, and its record to an owner that is dead: the order had been received often before,
// and the receive of the worker that is killed is its last one.
func (d *deployment) crash(ctx context.Context, o options) error {
	e, err := event(orders.Order{
		ID: crashed + "/placed", Type: "order.placed", Account: "acct-0026", Order: crashed, Amount: 5000, Currency: "EUR",
		At: time.Now().UTC().Truncate(time.Second), Review: "20s", Lines: []orders.Line{{SKU: "GFT-CARD-25", Quantity: 2, Price: 2500}},
	})
	if err != nil {
		return err
	}
	if _, err := d.publisher.Publish(ctx, e); err != nil {
		return err
	}
	for range maxReceives - 1 {
		if err := d.receive(ctx); err != nil {
			return err
		}
	}
	w, err := d.startWorker(o, "")
	if err != nil {
		return err
	}
	if err := d.awaitRecord(ctx, e.ID); err != nil {
		w.stop()
		return err
	}
	if err := errors.Join(w.cmd.Process.Kill(), ignoreKilled(w)); err != nil {
		return err
	}
	for range 2 * visibility / (100 * time.Millisecond) { // a receive moves it, once it is visible
		if err := d.receive(ctx); err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return d.await(ctx, 1)
}

// receive receives a message and gives it back.
func (d *deployment) receive(ctx context.Context) error {
	out, err := d.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(d.QueueURL[queue])})
	if err != nil {
		return err
	}
	for _, m := range out.Messages {
		_, err := d.SQS.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: aws.String(d.QueueURL[queue]), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitRecord waits until the worker has begun.
func (d *deployment) awaitRecord(ctx context.Context, id string) error {
	key, err := sqsonce.EventKey(namespace, id)
	if err != nil {
		return err
	}
	for range 600 {
		out, err := d.DynamoDB.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String(table), Key: map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: consumer + "#" + key}},
		})
		if err != nil || len(out.Item) > 0 {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("the worker has not begun order %s", id)
}

// worker is a process that runs the orders handler.
type worker struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	err   error // of Wait
}

// startWorker starts the command worker, which is beside this one.
func (d *deployment) startWorker(o options, status string) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command(filepath.Join(filepath.Dir(self), "worker")), log: filepath.Join(o.dir, "worker.log"), ended: make(chan struct{})}
	log, err := os.OpenFile(w.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has a copy of the descriptor
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.Env = append(os.Environ(),
		"AWS_ENDPOINT_URL="+d.url, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
		"QUEUE_URL="+d.QueueURL[queue], "DEDUP_TABLE="+table, "LEDGER_TABLE="+ledger, "CONSUMER="+consumer, "CONCURRENCY=4",
		"CALLS="+filepath.Join(o.dir, "calls"), "UNKNOWN_SKUS="+filepath.Join(o.dir, "unknown-articles"),
		"VISIBILITY="+visibility.String(), "LEASE="+lease.String(), "HEALTH_ADDR="+status,
	)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		w.err = w.cmd.Wait()
		close(w.ended)
	}()
	return w, nil
}

// stop ends the worker as a platform does.
func (w *worker) stop() {
	_ = w.cmd.Process.Signal(syscall.SIGTERM) // an error says that it has ended
	<-w.ended
}

// ignoreKilled waits for a worker that was killed.
func ignoreKilled(w *worker) error {
	<-w.ended
	if state := w.cmd.ProcessState; state.ExitCode() != -1 {
		return fmt.Errorf("the worker ended by itself: %w, see %s", w.err, w.log)
	}
	return nil
}
