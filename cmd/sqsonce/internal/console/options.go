// Package console is the browser's view of what the command shows: queues, dead-letter queues, records, workers. It changes nothing
// without Options.Write, and then by the same commands, after the same questions.
package console

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/ops"
)

// Options are what package cli gives the console.
type Options struct {
	Queues  []Queue
	Workers []string // as fleet.Fleet.Targets
	Write   bool     // also act: without it the routes do not exist
	Joined  bool     // Open joins messages with records: there is a consumer
	Addr    string   // where it listens, as "127.0.0.1:8080": requests for another host are refused

	SQS        *sqs.Client
	CloudWatch *cloudwatch.Client // nil: the age is not shown
	HTTP       *http.Client       // for workers

	// Open opens the dead-letter queue of a queue, joined with the consumer's records as far as the flags say.
	Open func(ctx context.Context, queue Queue) (*ops.DLQ, error)
	// Record reads a record; nil: there is no store.
	Record func(ctx context.Context, key string) (dedup.Record, dedup.RecordState, error)
	// Doctor examines the deployment of a queue.
	Doctor func(ctx context.Context, queue Queue) []doctor.Finding
	// Command runs a command of sqsonce, such as "dlq", "redrive", with the console's own --consumer, --table and so on, and
	// returns its exit code. Nobody is there to answer its questions: it has --yes, once the page has asked them.
	Command func(ctx context.Context, out, err io.Writer, args ...string) int

	// Archive names a new file for what is deleted from a dead-letter queue, whose name it gets.
	Archive func(dlq string) (string, error)

	Logger *slog.Logger
}

// Queue is a source queue and its dead-letter queue.
type Queue struct {
	Name            string // also in paths of pages
	URL             string
	DLQName, DLQURL string // "": it has none
}
