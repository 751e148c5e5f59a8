package esm_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	got = append(bytes.ReplaceAll(bytes.Clone(got), []byte(`},{"eventID"`), []byte("},\n{\"eventID\"")), '\n')
	if *update {
		must.Do(t, os.WriteFile(file, got, 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func (x *streamFixture) replaceShards(children int) {
	x.Helper()
	must.Do(x, x.srv.ReplaceShards("orders", children))
}

// "The parent shard must be processed before its children": https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
func TestStreamParentsFirst(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1")
		x.replaceShards(2)
		x.put("a2", "b2")
		x.replaceShards(1)
		x.put("a3", "b3")
		blocked := true
		x.run(esm.StreamConfig{}, func(_ context.Context, e events.DynamoDBEvent) (any, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if blocked && strings.Contains(namesOf(e), "a1") {
				return nil, errFunction
			}
			return nil, nil
		})
		time.Sleep(5 * time.Minute)
		x.mu.Lock()
		if other := slices.DeleteFunc(slices.Clone(x.batches), func(b string) bool { return b == "a1 b1" }); len(other) > 0 {
			x.Errorf("%v were invoked while the parent's batch fails", other)
		}
		blocked, x.batches = false, nil
		x.mu.Unlock()
		time.Sleep(time.Minute)
		x.put("a4", "b4") // in shards that are open
		time.Sleep(time.Minute)
		x.replaceShards(1)
		x.put("a5", "b5")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			var got []string
			for _, name := range strings.Fields(strings.Join(x.batches, " ")) {
				if name[:1] == id {
					got = append(got, name)
				}
			}
			if want := []string{id + "1", id + "2", id + "3", id + "4", id + "5"}; !slices.Equal(got, want) {
				x.Errorf("records %v, want %v", got, want)
			}
		}
	})
}

// LATEST is for the shards that are there at first; their children are read from the beginning.
func TestStreamFromLatest(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		x.replaceShards(1)
		x.put("a2")
		x.run(esm.StreamConfig{FromLatest: true}, succeed)
		time.Sleep(time.Minute)
		x.put("a3")
		x.replaceShards(2)
		x.put("a4")
		time.Sleep(time.Minute)
		x.wantBatches("a3", "a4")
	})
}

// An outage while the first iterator is made loses nothing of what comes after the start, and brings nothing old back.
func TestStreamFromLatestInAnOutage(t *testing.T) {
	for _, op := range []string{"GetShardIterator", "GetRecords"} {
		onStream(t, func(x *streamFixture) {
			x.put("a1")
			time.Sleep(time.Hour)
			x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: op, Do: fault.Error}}})
			x.run(esm.StreamConfig{FromLatest: true}, succeed)
			time.Sleep(10 * time.Minute)
			x.put("a2")
			time.Sleep(10 * time.Minute)
			x.srv.Set(fault.Plan{})
			time.Sleep(time.Minute)
			x.wantBatches("a2")
		})
	}
}

// An outage of the stream costs its time, and at most 30 s more.
func TestStreamOutage(t *testing.T) {
	for _, rule := range []fault.Rule{
		{Do: fault.Error}, {Do: fault.LoseReply}, {Do: fault.Reset}, {Op: "GetRecords", Do: fault.Error, Code: "LimitExceededException"},
		{Op: "GetRecords", Do: fault.Error, Code: "ExpiredIteratorException"}, {Op: "DescribeStream", Do: fault.Error},
		{Op: "GetRecords", Do: fault.Delay, Delay: 24 * time.Hour},
	} {
		onStream(t, func(x *streamFixture) {
			x.put("a1")
			x.run(esm.StreamConfig{}, succeed)
			time.Sleep(10 * time.Second)
			before := len(x.srv.Calls())
			x.srv.Set(fault.Plan{Rules: []fault.Rule{rule}})
			time.Sleep(12 * time.Minute)
			if n := len(x.srv.Calls()) - before; rule.Op != "DescribeStream" && n > 200 { // two shards' worth of a call each 30 s, and of describing each 10 s
				x.Errorf("%+v: %d calls in twelve minutes", rule, n)
			}
			x.srv.Set(fault.Plan{})
			x.put("a2")
			x.replaceShards(1)
			x.put("a3")
			time.Sleep(2 * time.Minute)
			x.wantBatches("a1", "a2", "a3")
		})
	}
}

// An iterator expires while a slow function holds the shard up. Nothing is read twice, nothing is lost.
func TestStreamIteratorExpires(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "a2", "a3", "a4")
		x.run(esm.StreamConfig{BatchSize: 1, FunctionTimeout: 15 * time.Minute}, func(context.Context, events.DynamoDBEvent) (any, error) {
			time.Sleep(14 * time.Minute)
			return nil, nil
		})
		time.Sleep(57 * time.Minute)
		x.wantBatches("a1", "a2", "a3", "a4")
	})
}

// What the stream has trimmed before it was read is told of, and the rest goes on.
func TestStreamTrimmed(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "a2", "a3")
		blocked := true
		x.run(esm.StreamConfig{BatchSize: 1, MaximumRecordAge: 48 * time.Hour}, func(context.Context, events.DynamoDBEvent) (any, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			if blocked {
				return nil, errFunction
			}
			return nil, nil
		})
		time.Sleep(25 * time.Hour)
		x.put("a4")
		x.mu.Lock()
		x.batches, blocked = nil, false
		x.mu.Unlock()
		time.Sleep(time.Minute)
		x.wantBatches("a1", "a2", "a4") // "a2" was read before
		x.wantDropped("0 the stream no longer has records that were not yet read")
	})
}

// A stop lets what runs end, and begins nothing.
func TestStreamStop(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1", "c1")
		x.run(esm.StreamConfig{BatchSize: 1, FunctionTimeout: time.Minute}, func(ctx context.Context, _ events.DynamoDBEvent) (any, error) {
			time.Sleep(20 * time.Second)
			return nil, ctx.Err()
		})
		time.Sleep(25 * time.Second)
		x.wantStopTakes(15 * time.Second)
		x.wantBatches("a1", "b1")
	})
}

// A read that hangs does not hold a stop up, and is no failure then. After an outage the pauses begin at a second again.
func TestStreamStopWhileReading(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "GetRecords", Nth: 10, Times: 5, Do: fault.Error}, {Op: "GetRecords", Nth: 20, Do: fault.Error}, {Op: "GetRecords", Nth: 30, Do: fault.Delay, Delay: time.Hour}}})
		x.run(esm.StreamConfig{}, succeed)
		time.Sleep(50 * time.Second)
		x.wantStopTakes(0)
		if n := strings.Count(x.log.String(), "cannot be read"); n != 6 {
			x.Errorf("%d failures are logged, want the six before the stop", n)
		}
		if n := strings.Count(x.log.String(), "pause=1s"); n != 2 {
			x.Errorf("%d outages begin with a pause of a second, want 2", n)
		}
	})
}

// A batch that fails forever does not hold a stop up.
func TestStreamStopWhileFailing(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1", "c1")
		x.run(esm.StreamConfig{BatchSize: 2, BatchingWindow: 300 * time.Second, MaximumRetryAttempts: 1000, BisectOnError: true}, fails("a1", "b1"))
		time.Sleep(time.Hour)
		x.wantStopTakes(0)
	})
}

// What a function does to itself fails its batch only.
func TestStreamFunctionErrors(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		var calls atomic.Int64 // the second call runs on when the third begins
		x.run(esm.StreamConfig{MaximumRetryAttempts: 10}, func(ctx context.Context, _ events.DynamoDBEvent) (any, error) {
			switch calls.Add(1) {
			case 1:
				panic("of the function")
			case 2:
				time.Sleep(time.Minute) // beyond its timeout of 3 s
			case 3:
				return strings.Repeat("x", 6<<20), nil
			}
			return nil, nil
		})
		time.Sleep(2 * time.Minute)
		x.wantBatches("a1", "a1", "a1", "a1")
		for _, want := range []string{"of the function", "Task timed out after 3.00 seconds", "exceeds the 6 MB"} {
			if !strings.Contains(x.log.String(), want) {
				x.Errorf("the log has no %q", want)
			}
		}
	})
}

// OnDropped gets the sequence numbers of the records. A panic of it ends nothing.
func TestStreamOnDropped(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1", "b1")
		var want, got []string
		x.run(esm.StreamConfig{MaximumRetryAttempts: -1, OnDropped: func(records []string, _ string) { got = append(got, records...); panic("of OnDropped") }}, func(ctx context.Context, e events.DynamoDBEvent) (any, error) {
			for _, r := range e.Records {
				want = append(want, r.Change.SequenceNumber)
			}
			return fails("a1")(ctx, e)
		})
		synctest.Wait()
		if len(want) != 2 || !slices.Equal(got, want) {
			x.Errorf("dropped %v, want %v", got, want)
		}
		x.put("a2")
		time.Sleep(time.Minute)
		x.wantBatches("a1 b1", "a2")
		x.mustStop()
		if !strings.Contains(x.log.String(), "OnDropped panicked") {
			x.Error("the log does not say so")
		}
	})
}

// A stream that is disabled is processed to its end. One that is gone is an error.
func TestStreamEnds(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		x.run(esm.StreamConfig{}, succeed)
		time.Sleep(time.Minute)
		x.put("a2")
		must.Get(x.db.UpdateTable(x.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("orders"), StreamSpecification: &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(false)}}))(x)
		time.Sleep(time.Minute)
		x.wantBatches("a1", "a2")
		if err := x.stop(); !errors.Is(err, esm.ErrStreamEnded) {
			x.Errorf("RunStream returned %v, want ErrStreamEnded", err)
		}
	})
	onStream(t, func(x *streamFixture) {
		x.put("a1")
		x.run(esm.StreamConfig{}, func(context.Context, events.DynamoDBEvent) (any, error) { return nil, esm.ErrThrottled })
		time.Sleep(time.Minute)
		x.srv.Set(fault.Plan{Rules: []fault.Rule{{Op: "DescribeStream", Do: fault.Error, Code: "ResourceNotFoundException"}}})
		time.Sleep(time.Minute)
		err := x.stop()
		if _, gone := errors.AsType[*streamtypes.ResourceNotFoundException](err); !gone {
			x.Errorf("RunStream returned %v, want ResourceNotFoundException", err)
		}
		x.run(esm.StreamConfig{}, succeed)
		synctest.Wait()
		if err = x.stop(); err == nil || !strings.Contains(err.Error(), "describe stream") {
			x.Errorf("RunStream of no stream returned %v", err)
		}
	})
}

// A stream of many shards has pages of descriptions, and memory of those that are there only.
func TestStreamManyShards(t *testing.T) {
	onStream(t, func(x *streamFixture) {
		x.run(esm.StreamConfig{MaximumRetryAttempts: -1}, succeed)
		var want []string
		for i := range 150 {
			x.replaceShards(1)
			x.put(fmt.Sprint("a", i))
			want = append(want, fmt.Sprint("a", i))
		}
		time.Sleep(time.Minute)
		x.wantBatches(want...)
	})
}
