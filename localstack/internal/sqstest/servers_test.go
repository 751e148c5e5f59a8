package sqstest_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
	"github.com/sqsonce/sqsonce/localstack/internal/sqstest"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// on returns a backend of an emulator, which it starts.
func on(t *testing.T, e *testserver.Emulator, known map[string]string) sqstest.Backend {
	t.Parallel()
	p := e.Shared(t)
	return sqstest.Backend{
		Known: known,
		New: func(t *testing.T) *sqs.Client {
			// The default is ten idle connections per host, and more cases run at once.
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.MaxIdleConnsPerHost = 64
			t.Cleanup(transport.CloseIdleConnections)
			return testaws.SQS(transport, once, func(o *sqs.Options) { o.BaseEndpoint = &p.URL })
		},
	}
}

func TestLocalStack(t *testing.T) {
	sqstest.Run(t, on(t, testserver.LocalStack, localstackKnown))
}

// Moto is the only emulator with the limit of 12 h. It is tested for that, and for what a dead-letter queue has of a message.
func TestMoto(t *testing.T) {
	b := on(t, testserver.Moto, motoKnown)
	b.Only = []string{
		"visibility/less than 0 refused", "visibility/12 h of a receive accepted",
		"visibility/more than 12 h of a receive refused", "visibility/12 h in all, counted from the receive",
		"visibility/12 h begin anew with a receive", "visibility/more than 12 h refused, changes nothing", "visibility/change in a batch beyond 12 h fails by entry",
		"redrive/keeps its identity", "redrive/names its source", "redrive/a message that was sent names no source",
		"redrive/FIFO keeps its identity and its group", "redrive/FIFO takes the message ID for deduplication",
		"redrive/FIFO names its source", "redrive/FIFO message that was sent names no source", "redrive policy/sources of a dead-letter queue",
		"move/is listed",
		"group lock/shows at most ten while held",
	}
	sqstest.Run(t, b)
}

func TestMemSQS(t *testing.T) {
	t.Parallel()
	sqstest.Run(t, inMemory())
}

// With the documented errors all passes but what AWS was recorded to answer instead.
func TestMemSQSStrictHandles(t *testing.T) {
	t.Parallel()
	b := inMemory(func(o *memsqs.Options) { o.StrictHandles = true })
	b.Known = map[string]string{
		"recorded/change after expiry succeeds":                 "answers MessageNotInflight, as documented",
		"recorded/change with a superseded handle is performed": "refuses it, as users have reported",
	}
	sqstest.Run(t, b)
}

// A standard queue that reorders messages passes: the cases ask for no order that AWS does not promise.
func TestMemSQSReordering(t *testing.T) {
	t.Parallel()
	sqstest.Run(t, inMemory(func(o *memsqs.Options) { o.Reorder = 5 }))
}

func inMemory(optFns ...func(*memsqs.Options)) sqstest.Backend {
	return sqstest.Backend{
		Virtual: true,
		New: func(t *testing.T) *sqs.Client {
			all := places.New(places.Place{Region: "us-east-1", Account: "000000000000"}, func(p places.Place) *places.Services {
				region := func(o *memsqs.Options) { o.Region = p.Region }
				return &places.Services{Place: p, SQS: memsqs.New(append(slices.Clone(optFns), region)...), DynamoDB: memdynamodb.New()}
			})
			t.Cleanup(all.Close)
			return testaws.SQS(all, once)
		},
	}
}

// once has the client send each request once.
func once(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
