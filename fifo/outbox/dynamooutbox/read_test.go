package dynamooutbox

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// The run begins at the lowest seq, has no gap behind an event that is to be sent, and ends at the limit.
func TestReadRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put        []int
		skip, halt []int
		known      outbox.Known
		limit      int
		want       string
	}{
		"none":                            {limit: 3, want: ""},
		"from 1":                          {put: []int{1, 2, 3}, limit: 3, want: "1 2 3"},
		"limit":                           {put: []int{1, 2, 3}, limit: 2, want: "1 2"},
		"later start":                     {put: []int{7, 8}, limit: 9, want: "7 8"},
		"a gap":                           {put: []int{1, 2, 4, 5}, limit: 9, want: "1 2 unsettled"},
		"a gap at the limit":              {put: []int{1, 2, 4}, limit: 2, want: "1 2"},
		"skipped do not count":            {put: []int{1, 2, 3, 4}, skip: []int{1, 3}, limit: 2, want: "1s 2 3s 4"},
		"skipped at the end":              {put: []int{1, 2, 3}, skip: []int{2, 3}, limit: 9, want: "1 2s 3s"},
		"later ones than skipped are out": {put: []int{1, 2, 7, 8}, skip: []int{2}, halt: nil, limit: 9, want: "1 2s unsettled"},
		"a gap behind skipped ones":       {put: []int{2, 4, 7, 8}, skip: []int{2, 4}, limit: 9, want: "2s 4s 7 8"},
		"only skipped":                    {put: []int{2, 4}, skip: []int{2, 4}, limit: 1, want: "2s 4s"},
		"halted ones count":               {put: []int{3, 4, 5}, halt: []int{3}, limit: 2, want: "3h 4"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.put("g", c.put...)
				b.park("g", outbox.OnRefusedSkip, c.skip...)
				b.park("g", outbox.OnRefusedHalt, c.halt...)
				b.put("h", 1) // another group
				b.wantRead("g", c.known, c.limit, c.want)
			})
		})
	}
}

// A page is one consistent Query; with skipped events before it there is one more.
func TestQueries(t *testing.T) {
	bubble(t, func(b *bed) {
		b.box = b.outbox(&lens{Client: b.ddb, query: func(in *dynamodb.QueryInput, next func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
			if !aws.ToBool(in.ConsistentRead) {
				b.Error("a Query without ConsistentRead")
			}
			return next()
		}}, testBox)
		b.put("g", many(70)...)
		b.wantOps("Query", func() { b.read("g", outbox.Known{}, 10) })
		b.park("g", outbox.OnRefusedSkip, many(50)...)
		b.wantOps("Query Query", func() { b.read("g", outbox.Known{}, 10) })
	})
}

// The event before the first one is asked for only where nothing else says that it is settled.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put, skip, halt []int
		known           outbox.Known
		want            string
	}{
		"seq 1":                            {put: []int{1}, want: "Query"},
		"none":                             {want: "Query"},
		"later":                            {put: []int{2}, want: "Query TransactGetItems"},
		"confirmed by the caller":          {put: []int{5}, known: outbox.Known{Confirmed: 4}, want: "Query"},
		"a later one confirmed":            {put: []int{5}, known: outbox.Known{Confirmed: 9}, want: "Query"},
		"an earlier one confirmed":         {put: []int{5}, known: outbox.Known{Confirmed: 3}, want: "Query TransactGetItems"},
		"seen is not confirmed":            {put: []int{5}, known: outbox.Known{Seen: 9}, want: "Query TransactGetItems"},
		"skipped before":                   {put: []int{4, 5}, skip: []int{4}, want: "Query"},
		"skipped, but not the one before":  {put: []int{3, 5}, skip: []int{3}, want: "Query TransactGetItems"},
		"the first is halted":              {put: []int{5}, halt: []int{5}, want: "Query"},
		"a later one than first is halted": {put: []int{5, 6}, halt: []int{6}, want: "Query TransactGetItems"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.put("g", c.put...)
				b.park("g", outbox.OnRefusedSkip, c.skip...)
				b.park("g", outbox.OnRefusedHalt, c.halt...)
				before := b.box.Probes()
				b.wantOps(c.want, func() { b.read("g", c.known, 9) })
				if got, want := b.box.Probes()-before, int64(strings.Count(c.want, "Transact")); got != want {
					t.Errorf("Probes counts %d, want %d", got, want)
				}
			})
		})
	}
}

// lens is a client that shows the outbox something else than what is there.
type lens struct {
	Client
	query func(in *dynamodb.QueryInput, next func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error)
	get   func(next func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error)
}

func (l *lens) Query(ctx context.Context, in *dynamodb.QueryInput, optFns ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	next := func() (*dynamodb.QueryOutput, error) { return l.Client.Query(ctx, in, optFns...) }
	if l.query == nil {
		return next()
	}
	return l.query(in, next)
}

func (l *lens) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, optFns ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	next := func() (*dynamodb.TransactGetItemsOutput, error) { return l.Client.TransactGetItems(ctx, in, optFns...) }
	if l.get == nil {
		return next()
	}
	return l.get(next)
}

// A Query that was made beside the commits shows 6 and not 5, which the probe finds: the group is read again, and not for ever.
func TestReadAgain(t *testing.T) {
	bubble(t, func(b *bed) {
		b.put("g", 5, 6)
		queries, hide := 0, 1
		b.box = b.outbox(&lens{Client: b.ddb, query: func(_ *dynamodb.QueryInput, next func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
			out, err := next()
			if queries++; err == nil && queries <= hide {
				out.Items = out.Items[1:]
			}
			return out, err
		}}, testBox)
		b.wantRead("g", outbox.Known{}, 9, "5 6")
		queries, hide = 0, 1000
		b.wantRead("g", outbox.Known{}, 9, "unsettled")
		if queries != mostReads {
			t.Errorf("%d queries, want %d", queries, mostReads)
		}
	})
}

// What the probe's failure means. Nothing of the group is returned in any case.
func TestProbeFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule fault.Rule
		want string
	}{
		"conflict":            {fault.Rule{Do: fault.FailEntries}, "unsettled"},
		"cancelled, throttle": {fault.Rule{Do: fault.FailEntries, Code: "ThrottlingError"}, "unsettled"},
		"cancelled, capacity": {fault.Rule{Do: fault.FailEntries, Code: "ProvisionedThroughputExceeded"}, "unsettled"},
		"cancelled, other":    {fault.Rule{Do: fault.FailEntries, Code: "ValidationError"}, "error"},
		"throttled":           {fault.Rule{Do: fault.Error, Code: "ThrottlingException"}, "unsettled"},
		"capacity":            {fault.Rule{Do: fault.Error, Code: "ProvisionedThroughputExceededException"}, "unsettled"},
		"rate":                {fault.Rule{Do: fault.Error, Code: "RequestLimitExceeded"}, "unsettled"},
		"denied":              {fault.Rule{Do: fault.Error, Code: "AccessDeniedException"}, "denied"},
		"internal":            {fault.Rule{Do: fault.Error}, "error"},
		"reset":               {fault.Rule{Do: fault.Reset}, "error"},
		"no answer":           {fault.Rule{Do: fault.Delay, Delay: time.Hour}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.put("g", 5)
				c.rule.Op, c.rule.Prob = "TransactGetItems", 1
				b.faults(c.rule)
				began := time.Now()
				b.wantRead("g", outbox.Known{}, 9, c.want)
				if d := time.Since(began); d > callTimeout {
					t.Errorf("Read took %v, want at most %v", d, callTimeout)
				}
				b.faults()
				b.wantRead("g", outbox.Known{}, 9, "5")
			})
		})
	}
}

// An item that cannot be decoded ends the run; what is before it may be sent.
func TestBrokenItem(t *testing.T) {
	t.Parallel()
	good := func() item { return encode("orders#g", 2, source, event("g", 2), time.Now()) }
	for name, spoil := range map[string]func(it item){
		"later version":            func(it item) { it[attrVersion] = number(2) },
		"no version":               func(it item) { delete(it, attrVersion) },
		"version is text":          func(it item) { it[attrVersion] = text("1") },
		"no id":                    func(it item) { delete(it, attrID) },
		"no source":                func(it item) { delete(it, attrSource) },
		"no payload":               func(it item) { delete(it, attrPayload) },
		"payload is binary":        func(it item) { it[attrPayload] = &ddbtypes.AttributeValueMemberB{Value: []byte("{}")} },
		"no time":                  func(it item) { delete(it, attrCreatedAt) },
		"fraction":                 func(it item) { it[attrCreatedAt] = &ddbtypes.AttributeValueMemberN{Value: "1.5"} },
		"type is a number":         func(it item) { it[attrType] = number(1) },
		"trace is null":            func(it item) { it[attrTrace] = &ddbtypes.AttributeValueMemberNULL{Value: true} },
		"unknown mark":             func(it item) { it[attrParked] = text("WAIT") },
		"mark is a list":           func(it item) { it[attrParked] = &ddbtypes.AttributeValueMemberL{} },
		"attributes are text":      func(it item) { it[attrAttributes] = text("{}") },
		"attribute is text":        func(it item) { it[attrAttributes] = &ddbtypes.AttributeValueMemberM{Value: item{"a": text("b")}} },
		"attribute without a type": func(it item) { it[attrAttributes] = attributeOf(item{attrAttrValue: text("b")}) },
		"attribute without value":  func(it item) { it[attrAttributes] = attributeOf(item{attrAttrType: text("String")}) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				it := good()
				spoil(it)
				b.put("g", 1, 3)
				b.set(it)
				es, err := b.box.Read(b.Context(), outbox.Group{Name: "g"}, outbox.Known{}, 9)
				if got := describe(es, err); got != "1 broken" {
					t.Errorf("got %q, want event 1 and a broken one", got)
				}
				if e, ok := errors.AsType[*outbox.GroupError](err); !ok || !errors.Is(err, outbox.ErrBroken) || e.Group != "g" || e.Seq != 2 {
					t.Errorf("got error %v, want ErrBroken of event 2 of g", err)
				}
				b.put("h", 1)
				b.wantRead("h", outbox.Known{}, 9, "1")
			})
		})
	}
}

// A seq that Put does not give breaks the group where it is.
func TestBrokenSeq(t *testing.T) {
	t.Parallel()
	for seq, want := range map[string]string{"0": "broken", "-1": "broken", "0.5": "broken", "1.5": "1 broken", "2.5": "1 2 broken", "9223372036854775808": "1 2 broken"} {
		inBubble(t, func(b *bed) {
			b.put("g", 1, 2)
			it := encode(b.box.partition("g"), 1, source, event("g", 9), time.Now())
			it[attrSeq] = &ddbtypes.AttributeValueMemberN{Value: seq}
			b.set(it)
			b.wantRead("g", outbox.Known{}, 9, want)
			if all, _ := b.sweep(b.box, 9); names(all) != "g" {
				b.Errorf("a sweep finds %v", all)
			}
		})
	}
}

func attributeOf(it item) ddbtypes.AttributeValue {
	return &ddbtypes.AttributeValueMemberM{Value: item{"a": &ddbtypes.AttributeValueMemberM{Value: it}}}
}

// Answers that are none of DynamoDB's are errors. Nothing is sent by them, nothing hangs, and nothing panics.
func TestLyingClient(t *testing.T) {
	t.Parallel()
	first := func(b *bed) item { return encode(b.box.partition("g"), 1, source, event("g", 1), time.Now()) }
	for name, query := range map[string]func(b *bed) (*dynamodb.QueryOutput, error){
		"neither answer nor error": func(*bed) (*dynamodb.QueryOutput, error) { return nil, nil },
		"panic":                    func(*bed) (*dynamodb.QueryOutput, error) { panic("wrapper") },
		"nil item":                 func(*bed) (*dynamodb.QueryOutput, error) { return &dynamodb.QueryOutput{Items: []item{nil}}, nil },
		"nil values": func(*bed) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{Items: []item{{attrPK: (*ddbtypes.AttributeValueMemberS)(nil), attrSeq: nil}}}, nil
		},
		"another group": func(b *bed) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{Items: []item{encode(b.box.partition("x"), 1, source, event("x", 1), time.Now())}}, nil
		},
		"twice": func(b *bed) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{Items: []item{first(b), first(b)}}, nil
		},
		"the first page for ever": func(b *bed) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{Items: []item{first(b)}, LastEvaluatedKey: keyOf(b.box.partition("g"), 1)}, nil
		},
		"empty pages for ever": func(b *bed) (*dynamodb.QueryOutput, error) {
			return &dynamodb.QueryOutput{LastEvaluatedKey: keyOf(b.box.partition("g"), 1)}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.box = b.outbox(&lens{Client: b.ddb, query: func(*dynamodb.QueryInput, func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
					return query(b)
				}}, testBox)
				b.wantRead("g", outbox.Known{}, 9, "error")
			})
		})
	}
	for name, get := range map[string]func() (*dynamodb.TransactGetItemsOutput, error){
		"no probe":    func() (*dynamodb.TransactGetItemsOutput, error) { return &dynamodb.TransactGetItemsOutput{}, nil },
		"nil probe":   func() (*dynamodb.TransactGetItemsOutput, error) { return nil, nil },
		"panic probe": func() (*dynamodb.TransactGetItemsOutput, error) { panic("wrapper") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bed) {
				b.put("g", 5)
				b.box = b.outbox(&lens{Client: b.ddb, get: func(func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error) {
					return get()
				}}, testBox)
				b.wantRead("g", outbox.Known{}, 9, "error")
			})
		})
	}
}
