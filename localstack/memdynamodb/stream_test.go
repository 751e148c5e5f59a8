package memdynamodb_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// What a client sees of a stream is in ddbtest. Here is what needs the server's clock, its seed or its methods.

// streamed is the stream of the table "orders" of a server.
type streamed struct {
	t   *testing.T
	srv *memdynamodb.Server
	db  *dynamodb.Client
	c   *dynamodbstreams.Client
	arn *string
}

func startStream(t *testing.T, optFns ...func(*memdynamodb.Options)) *streamed {
	t.Helper()
	srv, c := start(t, optFns...)
	s := &streamed{t: t, srv: srv, db: c, c: testaws.Streams(srv)}
	s.enable(true)
	return s
}

func (s *streamed) enable(on bool) {
	s.t.Helper()
	spec := &ddbtypes.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = ddbtypes.StreamViewTypeKeysOnly
	}
	out := must.Get(s.db.UpdateTable(s.t.Context(), &dynamodb.UpdateTableInput{TableName: orders, StreamSpecification: spec}))(s.t)
	s.arn = out.TableDescription.LatestStreamArn
}

func (s *streamed) put(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		putItem(s.t, s.db, "orders", item{"id": str(id)})
	}
}

func (s *streamed) shards() []streamtypes.Shard {
	s.t.Helper()
	out := must.Get(s.c.DescribeStream(s.t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn}))(s.t)
	return out.StreamDescription.Shards
}

func (s *streamed) iterator(shard *string, kind streamtypes.ShardIteratorType, sequence *string) (*string, error) {
	out, err := s.c.GetShardIterator(s.t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: s.arn, ShardId: shard, ShardIteratorType: kind, SequenceNumber: sequence})
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}

func (s *streamed) records(iterator *string) ([]streamtypes.Record, *string, error) {
	out, err := s.c.GetRecords(s.t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
	if err != nil {
		return nil, nil, err
	}
	return out.Records, out.NextShardIterator, nil
}

// read returns the ids of the shard's records, and whether the shard has ended.
func (s *streamed) read(sh streamtypes.Shard) (ids []string, all []streamtypes.Record, ended bool) {
	s.t.Helper()
	it := must.Get(s.iterator(sh.ShardId, "TRIM_HORIZON", nil))(s.t)
	for it != nil {
		page, next, err := s.records(it)
		must.Do(s.t, err)
		for _, r := range page {
			ids = append(ids, r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value)
		}
		all = append(all, page...)
		if len(page) == 0 && next != nil {
			return ids, all, false
		}
		it = next
	}
	return ids, all, true
}

// wantIDs expects the records of the stream's only shard.
func (s *streamed) wantIDs(want ...string) []streamtypes.Record {
	s.t.Helper()
	got, all, _ := s.read(s.shards()[0])
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("records: %s", diff)
	}
	return all
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// TestStreamKeepsADay: a record is there for 24 hours, then it is gone, and what asks for it is told so.
func TestStreamKeepsADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		began := time.Now()
		s.put("a")
		time.Sleep(time.Hour)
		s.put("b", "c")
		all := s.wantIDs("a", "b", "c")
		if got := *all[1].Dynamodb.ApproximateCreationDateTime; !got.Equal(began.Add(time.Hour)) {
			t.Errorf("b was created at %s, want %s", got, began.Add(time.Hour))
		}
		shard := s.shards()[0].ShardId
		time.Sleep(23*time.Hour - 10*time.Minute)
		horizon := must.Get(s.iterator(shard, "TRIM_HORIZON", nil))(t)
		time.Sleep(10*time.Minute - time.Nanosecond)
		s.wantIDs("a", "b", "c")
		time.Sleep(time.Nanosecond)
		s.wantIDs("b", "c")
		_, _, err := s.records(horizon) // it stands for "a", which has gone since
		wantCode(t, "an iterator of what is gone", err, "TrimmedDataAccessException")
		for _, kind := range []streamtypes.ShardIteratorType{"AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"} {
			_, err = s.iterator(shard, kind, all[0].Dynamodb.SequenceNumber)
			wantCode(t, string(kind)+" of what is gone", err, "TrimmedDataAccessException")
			if _, err = s.iterator(shard, kind, all[1].Dynamodb.SequenceNumber); err != nil {
				t.Errorf("%s of what is there: %v", kind, err)
			}
		}
		time.Sleep(time.Hour)
		s.wantIDs()
		s.put("d")
		s.wantIDs("d")
	})
}

// TestStreamIteratorsExpire: an iterator lives 15 minutes, and so does the next one that comes with records.
func TestStreamIteratorsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		s.put("a")
		first := must.Get(s.iterator(s.shards()[0].ShardId, "TRIM_HORIZON", nil))(t)
		time.Sleep(15*time.Minute - time.Nanosecond)
		_, next, err := s.records(first)
		must.Do(t, err)
		time.Sleep(time.Nanosecond)
		_, _, err = s.records(first)
		wantCode(t, "after 15 minutes", err, "ExpiredIteratorException")
		if _, _, err = s.records(next); err != nil {
			t.Errorf("the next iterator: %v", err)
		}
	})
}

// TestReplaceShards: children continue where the parent ends, an item's records stay in order, and a shard of which all is gone
// is gone too.
func TestReplaceShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t)
		ids := []string{}
		for i := range 40 {
			ids = append(ids, fmt.Sprint("id", i))
		}
		parent := map[string]string{}
		want := 1
		for _, children := range []int{0, 1, 2, 3} { // 1, 1, 2, 6 open shards
			if children > 0 {
				time.Sleep(time.Hour)
				must.Do(t, s.srv.ReplaceShards("orders", children))
				want += []int{0, 1, 2, 6}[children]
			}
			for _, id := range ids {
				putItem(t, s.db, "orders", item{"id": str(id), "round": num(fmt.Sprint(children))})
			}
		}
		shards := s.shards()
		if len(shards) != want {
			t.Fatalf("%d shards, want %d", len(shards), want)
		}
		seen, open, lastOf := 0, 0, map[string]string{}
		for _, sh := range shards { // parents first
			parent[*sh.ShardId] = aws.ToString(sh.ParentShardId)
			got, all, ended := s.read(sh)
			closed := sh.SequenceNumberRange.EndingSequenceNumber != nil
			if ended != closed {
				t.Errorf("shard %s has ended is %v, is closed is %v", *sh.ShardId, ended, closed)
			}
			if !closed {
				open++
				if len(got) == 0 {
					t.Errorf("shard %s of six has nothing of 40 items", *sh.ShardId)
				}
			}
			seen += len(got)
			for i, id := range got {
				if was, now := lastOf[id], *sh.ShardId; was != "" && parent[now] != was {
					t.Errorf("%s was in shard %s and is in %s, whose parent is %s", id, was, now, parent[now])
				}
				if n := *all[i].Dynamodb.SequenceNumber; n <= *sh.SequenceNumberRange.StartingSequenceNumber || closed && n >= *sh.SequenceNumberRange.EndingSequenceNumber {
					t.Errorf("sequence number %s is not within %+v", n, sh.SequenceNumberRange)
				}
				lastOf[id] = *sh.ShardId
			}
		}
		if seen != 4*len(ids) || open != 6 {
			t.Errorf("%d records in %d open shards, want %d in 6", seen, open, 4*len(ids))
		}
		time.Sleep(22 * time.Hour)
		if got := len(s.shards()); got != want-1 { // the first was closed 24 hours ago
			t.Errorf("%d shards after a day, want %d", got, want-1)
		}
		for what, err := range map[string]error{"no table": s.srv.ReplaceShards("none", 1), "no child": s.srv.ReplaceShards("orders", 0), "many": s.srv.ReplaceShards("orders", 17)} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		s.enable(false)
		if err := s.srv.ReplaceShards("orders", 1); err == nil {
			t.Error("no stream: no error")
		}
	})
}

// TestDisabledStreamKeepsADay: also that of a table that is gone.
func TestDisabledStreamKeepsADay(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := startStream(t)
			s.put("a")
			first := s.arn
			if deleted {
				must.Get(s.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: orders}))(t)
				createTable(t, s.db, "orders", "id", "")
			} else {
				s.enable(false)
			}
			s.enable(true) // at the same instant: a label of its own
			if *s.arn == *first {
				t.Errorf("both streams are %s", *first)
			}
			s.arn = first
			time.Sleep(24*time.Hour - time.Nanosecond)
			s.wantIDs("a")
			time.Sleep(time.Nanosecond)
			_, err := s.c.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: s.arn})
			wantCode(t, "after a day", err, "ResourceNotFoundException")
			out, err := s.c.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{})
			if err != nil || len(out.Streams) != 1 {
				t.Errorf("%d streams and %v, want the new one", len(out.Streams), err)
			}
		})
	}
}

// TestStreamOrderOfTransaction: the seed draws the order of the records of one transaction. The order of an item stays.
func TestStreamOrderOfTransaction(t *testing.T) {
	t.Parallel()
	order := func(seed uint64) string {
		s := startStream(t, func(o *memdynamodb.Options) { o.Faults = fault.Plan{Seed: seed} })
		s.put("a", "b", "c")
		must.Do(t, transact(t, s.db, txPut("a", "1"), txPut("b", "1"), txPut("c", "1")))
		ids, _, _ := s.read(s.shards()[0])
		if diff := cmp.Diff([]string{"a", "b", "c"}, ids[:3]); diff != "" {
			t.Errorf("writes one by one: %s", diff)
		}
		return strings.Join(ids[3:], " ")
	}
	seen := map[string]bool{}
	for seed := range uint64(30) {
		first := order(seed)
		if again := order(seed); again != first {
			t.Errorf("seed %d: %s, then %s", seed, first, again)
		}
		seen[first] = true
	}
	if len(seen) != 6 {
		t.Errorf("30 seeds draw the orders %v, want all six", seen)
	}
}

// TestStreamOfHalfApplied: a record comes when its item is written, with that time.
func TestStreamOfHalfApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStream(t, func(o *memdynamodb.Options) {
			o.Faults.Rules = []fault.Rule{{Op: "TransactWriteItems", Do: fault.HalfApplied, Delays: []time.Duration{time.Minute}}}
		})
		began := time.Now()
		must.Do(t, transact(t, s.db, txPut("late", "1"), txPut("soon", "1"), txCheck("none", "attribute_not_exists(id)")))
		s.wantIDs("soon")
		time.Sleep(time.Hour)
		s.put("next")
		all := s.wantIDs("soon", "late", "next")
		if got := *all[1].Dynamodb.ApproximateCreationDateTime; !got.Equal(began.Add(time.Minute)) {
			t.Errorf("created at %s, want %s", got, began.Add(time.Minute))
		}
	})
}

// TestStreamPagesBySize: a page has at most 1 MB, and at least one record.
func TestStreamPagesBySize(t *testing.T) {
	t.Parallel()
	s := startStream(t)
	s.enable(false)
	must.Get(s.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: orders, StreamSpecification: &ddbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: "NEW_AND_OLD_IMAGES"}}))(t)
	out := must.Get(s.c.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: orders}))(t)
	s.arn = out.Streams[1].StreamArn
	for _, fill := range []string{"x", "y", "z"} { // 390 KB, 780 KB, 780 KB
		putItem(t, s.db, "orders", item{"id": str("a"), "v": str(strings.Repeat(fill, 390<<10))})
	}
	it := must.Get(s.iterator(s.shards()[0].ShardId, "TRIM_HORIZON", nil))(t)
	var pages []int
	for range 3 {
		page, next, err := s.records(it)
		must.Do(t, err)
		pages, it = append(pages, len(page)), next
	}
	if want := []int{1, 1, 1}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v records, want %v", pages, want)
	}
}

// TestStreamFaults: the plan knows the operations of streams, and its record has them.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	s := startStream(t, func(o *memdynamodb.Options) {
		o.Faults.Rules = []fault.Rule{{Op: "GetRecords", Nth: 1, Do: fault.Error, Code: "LimitExceededException"}}
	})
	s.put("a")
	it := must.Get(s.iterator(s.shards()[0].ShardId, "TRIM_HORIZON", nil))(t)
	_, _, err := s.records(it)
	wantCode(t, "the first", err, "LimitExceededException")
	if page, _, err := s.records(it); err != nil || len(page) != 1 {
		t.Errorf("the second: %d records, %v", len(page), err)
	}
	calls := s.srv.Calls()
	if last := calls[len(calls)-1]; last.Op != "GetRecords" || last.Entries != 1 {
		t.Errorf("the last call is %+v", last)
	}
}
