package esm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// shardReader reads one shard and hands its records to lanes.
type shardReader struct {
	*streamMapping
	id    string
	log   *slog.Logger
	from  position  // of the next record
	since time.Time // of the oldest record to invoke, with FromLatest
}

// position is where an iterator begins.
type position struct {
	kind     streamtypes.ShardIteratorType
	sequence *string // of the last record that was read, with AFTER_SEQUENCE_NUMBER
}

const (
	// clockSkew is how far the stream's clock may be behind this one.
	clockSkew = time.Minute
	// pollPause is how long a mapping waits after a read without records: Lambda reads a shard four times a second.
	// https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
	pollPause = 250 * time.Millisecond
	// maxRead is the largest Limit of GetRecords.
	maxRead = 1000
)

// run reads until the shard ends or ctx is cancelled. It returns true when all records of the shard were processed.
func (r *shardReader) run(ctx context.Context) (processed bool) {
	var running sync.WaitGroup
	lanes := make([]*lane, r.cfg.ParallelizationFactor)
	for i := range lanes {
		lanes[i] = &lane{streamMapping: r.streamMapping, log: r.log, pages: make(chan []streamRecord)}
		running.Go(func() { lanes[i].run(ctx) })
	}
	ended := r.read(ctx, lanes)
	for _, l := range lanes {
		close(l.pages)
	}
	running.Wait()
	return ended
}

// read returns true at the end of the shard, false when ctx is cancelled.
func (r *shardReader) read(ctx context.Context, lanes []*lane) (ended bool) {
	var iterator *string
	pause := minPollPause
	for ctx.Err() == nil {
		records, next, err := r.next(ctx, iterator)
		if err != nil {
			fresh := iterator == nil
			iterator = nil
			if ended, failed := r.recover(ctx, err, fresh); ended {
				return true
			} else if failed {
				r.log.Warn("esm: the shard cannot be read", "error", err, "pause", pause)
				sleep(ctx, pause)
				pause = min(2*pause, maxPollPause)
			}
			continue
		}
		pause = minPollPause
		if !r.dispatch(ctx, records, lanes) {
			return false
		}
		if next == nil {
			return true
		}
		iterator = next
		if len(records) == 0 {
			sleep(ctx, pollPause)
		}
	}
	return false
}

// next reads a page. A nil iterator is made from the position first.
func (r *shardReader) next(ctx context.Context, iterator *string) (records []streamtypes.Record, next *string, err error) {
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	if iterator == nil {
		in := &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.cfg.StreamARN, ShardId: &r.id, ShardIteratorType: r.from.kind, SequenceNumber: r.from.sequence,
		}
		if r.from.kind == streamtypes.ShardIteratorTypeLatest {
			// If this fails, a second LATEST would pass over what has come since. The records before r.since are passed over instead.
			r.from.kind = streamtypes.ShardIteratorTypeTrimHorizon
		}
		out, err := r.client.GetShardIterator(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		iterator = out.ShardIterator
	}
	limit := int32(min(maxRead, r.cfg.BatchSize*r.cfg.ParallelizationFactor))
	out, err := r.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: &limit})
	if err != nil {
		return nil, nil, err
	}
	return out.Records, out.NextShardIterator, nil
}

// recover says what a failed read means: that the shard has ended, because the stream no longer has it, that it failed and is
// tried again after a pause, or neither, and it is tried again from the position. fresh says that the iterator was new: it
// cannot be too old.
func (r *shardReader) recover(ctx context.Context, err error, fresh bool) (ended, failed bool) {
	if ctx.Err() != nil {
		return false, false
	}
	if _, expired := errors.AsType[*streamtypes.ExpiredIteratorException](err); expired && !fresh {
		return false, false
	}
	if _, trimmed := errors.AsType[*streamtypes.TrimmedDataAccessException](err); trimmed && r.from.kind != streamtypes.ShardIteratorTypeTrimHorizon {
		r.drop(nil, "the stream no longer has records that were not yet read", err)
		r.from = position{kind: streamtypes.ShardIteratorTypeTrimHorizon}
		return false, false
	}
	if isStreamGone(err) {
		r.drop(nil, "the stream no longer has the shard", err)
		return true, false
	}
	return false, true
}

// dispatch gives each record to the lane of its item. A lane that is busy takes none: the reader waits for it. It returns false
// when ctx is cancelled.
func (r *shardReader) dispatch(ctx context.Context, records []streamtypes.Record, lanes []*lane) bool {
	pages := make([][]streamRecord, len(lanes))
	for _, raw := range records {
		rec, err := encodeStreamRecord(raw, r.cfg.StreamARN)
		if err != nil {
			r.drop(nil, "the record cannot be sent to a function", err)
			continue
		}
		r.from = position{streamtypes.ShardIteratorTypeAfterSequenceNumber, aws.String(rec.sequence)}
		if !rec.at.Before(r.since) && r.filters.matchRecord(rec.json) {
			i := rec.item % uint64(len(lanes))
			pages[i] = append(pages[i], rec)
		}
	}
	for i, page := range pages {
		if len(page) == 0 {
			continue
		}
		select {
		case lanes[i].pages <- page:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
