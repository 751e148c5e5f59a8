// Package plan is the resources of a template or of a configuration, and creates them.
package plan

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/localstack/internal/ensure"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

// Plan is what localaws makes.
type Plan struct {
	Queues    []Queue
	Tables    []Table
	Functions []Function
	Mappings  []Mapping
	// LeftOut has a line for each part of the file that localaws does not make, in the order of the file.
	LeftOut []string
}

// Add adds the resources of another plan.
func (p *Plan) Add(other *Plan) {
	p.Queues = append(p.Queues, other.Queues...)
	p.Tables = append(p.Tables, other.Tables...)
	p.Functions = append(p.Functions, other.Functions...)
	p.Mappings = append(p.Mappings, other.Mappings...)
	p.LeftOut = append(p.LeftOut, other.LeftOut...)
}

// Queue is a queue.
type Queue struct {
	Name       string
	Attributes map[string]string // of CreateQueue
	Tags       map[string]string
}

// Table is a table.
type Table struct {
	Create dynamodb.CreateTableInput
	TTL    string // attribute; "": none
	Backup bool   // point-in-time recovery
	Items  []map[string]ddbtypes.AttributeValue
}

// Function is a Lambda function.
type Function struct {
	ID, Name    string // the ID is that in the template, and otherwise the name
	Bootstrap   string // path; "": it does not run
	Timeout     time.Duration
	MemorySize  int // MB
	Env         map[string]string
	Concurrency int // processes at once; 0: the default of runtimeapi
}

// Mapping is an event source mapping.
type Mapping struct {
	ID       string // UUID
	Function string
	// Source is the ARN of a queue, or of a table's stream with "latest" in place of its label, see [Stream].
	Source   string
	Disabled bool

	BatchSize               int
	Window                  time.Duration
	MaximumConcurrency      int
	ReportBatchItemFailures bool
	Filters                 []string

	// Of streams only.
	FromLatest            bool
	BisectOnError         bool
	MaximumRetryAttempts  *int // nil: as often as the records are young enough
	MaximumRecordAge      time.Duration
	ParallelizationFactor int
}

const latest = "/stream/latest"

// Stream is the ARN of a table's stream. Its label is known when the table exists: see [Mapping.TableName].
func Stream(p places.Place, table string) string { return p.ARN("dynamodb", "table/"+table) + latest }

// QueueName returns the name of the queue of a mapping, "" for a stream's.
func (m Mapping) QueueName() string {
	if part := strings.Split(m.Source, ":"); len(part) == 6 && part[2] == "sqs" {
		return part[5]
	}
	return ""
}

// TableName returns the name of the table whose stream a mapping reads, "" for a queue's.
func (m Mapping) TableName() string {
	arn, isStream := strings.CutSuffix(m.Source, latest)
	if _, table, ok := strings.Cut(arn, ":table/"); ok && isStream {
		return table
	}
	return ""
}

// FunctionName reads the name of a function or its ARN, without the qualifier of either.
func FunctionName(s string) string {
	if _, rest, ok := strings.Cut(s, ":function:"); ok {
		s = rest
	}
	name, _, _ := strings.Cut(s, ":")
	return name
}

// UUID makes the ID of a mapping, which stays the same in the next start.
func UUID(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Check reports names that two resources share, and mappings without their function.
func (p *Plan) Check() error {
	var errs []error
	seen := map[string]bool{}
	once := func(kind, name string) {
		if seen[kind+name] {
			errs = append(errs, fmt.Errorf("two %ss are named %s", kind, name))
		}
		seen[kind+name] = true
	}
	for _, q := range p.Queues {
		once("queue", q.Name)
	}
	for _, t := range p.Tables {
		once("table", *t.Create.TableName)
	}
	for _, f := range p.Functions {
		once("function", f.Name)
	}
	for _, m := range p.Mappings {
		once("mapping", m.ID)
		if !seen["function"+m.Function] {
			errs = append(errs, fmt.Errorf("the mapping of %s names the function %s, which is not defined", m.Source, m.Function))
		}
	}
	return errors.Join(errs...)
}

// Create creates the queues and tables that do not exist. A queue that exists gets the attributes of the plan. A table
// that exists stays as it is, with a line in log if it differs. Items are put into tables that it has created.
func (p *Plan) Create(ctx context.Context, q *sqs.Client, d *dynamodb.Client, log io.Writer) error {
	// Policies name other queues, which must exist.
	policies, urls := []string{"RedrivePolicy", "RedriveAllowPolicy"}, map[string]string{}
	for _, queue := range p.Queues {
		first := maps.Clone(queue.Attributes)
		maps.DeleteFunc(first, func(name, _ string) bool { return slices.Contains(policies, name) })
		url, created, err := ensure.Queue(ctx, q, &sqs.CreateQueueInput{QueueName: &queue.Name, Attributes: first, Tags: queue.Tags})
		delete(first, "FifoQueue") // its name says the same, and it cannot be set
		if err == nil && !created && len(first) > 0 {
			err = setAttributes(ctx, q, url, first)
		}
		if err != nil {
			return fmt.Errorf("queue %s: %w", queue.Name, err)
		}
		urls[queue.Name] = url
	}
	for _, queue := range p.Queues {
		for _, k := range policies {
			if v, ok := queue.Attributes[k]; ok {
				if err := setAttributes(ctx, q, urls[queue.Name], map[string]string{k: v}); err != nil {
					return fmt.Errorf("queue %s: %s: %w", queue.Name, k, err)
				}
			}
		}
	}
	for _, t := range p.Tables {
		if err := t.create(ctx, d, log); err != nil {
			return fmt.Errorf("table %s: %w", *t.Create.TableName, err)
		}
	}
	return nil
}

func setAttributes(ctx context.Context, q *sqs.Client, url string, attributes map[string]string) error {
	_, err := q.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes})
	return err
}

func (t Table) create(ctx context.Context, d *dynamodb.Client, log io.Writer) error {
	name := t.Create.TableName
	created, err := ensure.Table(ctx, d, &t.Create, t.TTL)
	if err != nil {
		return err
	}
	if !created {
		return t.compare(ctx, d, log)
	}
	if t.Backup {
		_, err = d.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName: name, PointInTimeRecoverySpecification: &ddbtypes.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: new(true)},
		})
		if err != nil {
			return fmt.Errorf("point-in-time recovery: %w", err)
		}
	}
	for i, item := range t.Items {
		if _, err := d.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}
