package dynamooutbox

import (
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/outboxtest"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// examined is an outbox of the suite, and how events come into it.
type examined struct {
	*Outbox
	ddb   *dynamodb.Client
	table string

	mu   sync.Mutex
	seqs map[string]int64 // of each group, the last
}

// commit writes events in one transaction, with the groups' next numbers.
func (x *examined) commit(t *testing.T, es ...fifo.Event) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	in := &dynamodb.TransactWriteItemsInput{}
	for _, e := range es {
		x.seqs[e.Group]++
		p := must.Get(x.Put(e, x.seqs[e.Group]))(t)
		in.TransactItems = append(in.TransactItems, ddbtypes.TransactWriteItem{Put: p})
	}
	must.Get(x.ddb.TransactWriteItems(t.Context(), in))(t)
}

// damage makes an event one of a later version.
func (x *examined) damage(t *testing.T, e outbox.Entry) {
	t.Helper()
	must.Get(x.ddb.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(x.table), Key: keyOf(x.partition(e.Group), e.Seq), UpdateExpression: aws.String("SET v = :v"),
		ExpressionAttributeValues: item{":v": number(itemVersion + 1)},
	}))(t)
}

// replace puts another event into the place of one, as a restore of the table may.
func (x *examined) replace(t *testing.T, e outbox.Entry, with fifo.Event) {
	t.Helper()
	it := encode(x.partition(e.Group), e.Seq, source, with, time.Now())
	must.Get(x.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(x.table), Item: it}))(t)
}

// open returns an outbox in a table of another process's making.
func (x *examined) open(t *testing.T, name string) *examined {
	t.Helper()
	o := must.Get(New(x.ddb, x.table, name, source))(t)
	return &examined{Outbox: o, ddb: x.ddb, table: x.table, seqs: map[string]int64{}}
}

var suiteOf = outboxtest.Harness{
	Break:  func(t *testing.T, s outbox.Store, e outbox.Entry) { s.(*examined).damage(t, e) },
	Reopen: func(t *testing.T, s outbox.Store) outbox.Store { return s.(*examined).open(t, testBox) },
	Replace: func(t *testing.T, s outbox.Store, e outbox.Entry, with fifo.Event) {
		s.(*examined).replace(t, e, with)
	},
	Source:   source,
	NoClaims: true,
	Known: map[string]string{
		"delete/another event in its place stays": "a BatchWriteItem has no condition: the key is the identity, and no other event gets it but by a restore",
	},
}

func TestConformance(t *testing.T) {
	h := suiteOf
	var servers sync.Map // by store
	h.New = func(t *testing.T) (outbox.Store, func(*testing.T, ...fifo.Event)) {
		b := newBed(t)
		x := (&examined{ddb: b.ddb, table: testTable}).open(t, testBox)
		servers.Store(x, b)
		return x, x.commit
	}
	h.Half = func(t *testing.T, s outbox.Store, es ...fifo.Event) (finish func()) {
		const late = 10 * time.Second
		b, _ := servers.Load(s)
		delays := make([]time.Duration, len(es)-1)
		for i := range delays {
			delays[i] = late
		}
		b.(*bed).faults(fault.Rule{Op: "TransactWriteItems", Nth: 1, Do: fault.HalfApplied, Delays: delays})
		s.(*examined).commit(t, es...)
		return func() { time.Sleep(late) }
	}
	outboxtest.Run(t, h)
}

// The suite on dynoxide, which has no code in common with the server in memory, by sockets and in real time.
func TestConformanceOnDynoxide(t *testing.T) {
	t.Parallel()
	ddb := dynamodb.New(testaws.DynamoDB(http.DefaultTransport).Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint = aws.String(testserver.Dynoxide.Shared(t).URL)
	})
	h := suiteOf
	h.RealTime = true
	h.New = func(t *testing.T) (outbox.Store, func(*testing.T, ...fifo.Event)) {
		table := "outbox-" + rand.Text()
		must.Do(t, CreateTable(t.Context(), ddb, table))
		x := (&examined{ddb: ddb, table: table}).open(t, testBox)
		return x, x.commit
	}
	outboxtest.Run(t, h)
}
