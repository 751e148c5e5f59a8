package esm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// ErrStreamEnded is the error of [RunStream] when the stream is disabled and all its records were processed.
var ErrStreamEnded = errors.New("esm: the stream is disabled and was read to its end")

// RunStream reads the shards of a DynamoDB stream, a parent to its end before its children, and invokes as Lambda does. When ctx
// is cancelled, it returns nil. It first checks cfg, and the error of this check joins one for each bad field. It also returns an
// error if it can't describe the stream at first, if the stream doesn't exist any more, and [ErrStreamEnded]. It doesn't remember
// its position, so the next RunStream begins at the record that StreamConfig says.
//
// When ctx is cancelled, RunStream stops starting invocations, and waits for the running ones. It does not wait for an invoker
// that ignored its deadline.
func RunStream(ctx context.Context, c *dynamodbstreams.Client, cfg StreamConfig, invoke Invoker) error {
	cfg = cfg.withDefaults()
	fs, err := parseRecordFilters(cfg.Filters)
	if err := errors.Join(cfg.check(), err); err != nil {
		return err
	}
	m := &streamMapping{
		client: c, cfg: cfg, filters: fs, log: cfg.Logger.With("stream", cfg.StreamARN),
		function: function{invoke, cfg.FunctionTimeout, false}, ended: make(chan string),
		started: map[string]bool{}, done: map[string]bool{},
	}
	d, err := m.describe(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer m.shards.Wait()
	defer cancel()
	return m.run(ctx, d)
}

type streamMapping struct {
	client   *dynamodbstreams.Client
	cfg      StreamConfig
	filters  filters
	function function
	log      *slog.Logger

	shards        sync.WaitGroup
	ended         chan string     // IDs of shards that were processed to their end
	started, done map[string]bool // by shard ID; only run uses them
}

// describePause is how often a mapping looks for new shards. It also looks when a shard has ended.
const describePause = 10 * time.Second

// run starts the shards whose parents have ended.
func (m *streamMapping) run(ctx context.Context, d *streamtypes.StreamDescription) error {
	if m.cfg.FromLatest {
		for _, sh := range d.Shards { // what is closed has nothing that is new
			m.done[aws.ToString(sh.ShardId)] = closed(sh)
		}
	}
	latest := m.cfg.FromLatest
	for {
		running := m.startReady(ctx, d.Shards, latest)
		if !running && d.StreamStatus == streamtypes.StreamStatusDisabled {
			return ErrStreamEnded
		}
		latest = false
		wait := time.NewTimer(describePause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case id := <-m.ended:
			m.done[id] = true
		case <-wait.C:
		}
		wait.Stop()
		next, err := m.describe(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case isStreamGone(err):
			return err
		case err != nil:
			m.log.Warn("esm: the stream cannot be described", "error", err)
		default:
			d = next
		}
	}
}

func closed(sh streamtypes.Shard) bool {
	return sh.SequenceNumberRange != nil && sh.SequenceNumberRange.EndingSequenceNumber != nil
}

// startReady starts the shards that can start, and reports whether any runs. It forgets shards that the stream has forgotten.
func (m *streamMapping) startReady(ctx context.Context, shards []streamtypes.Shard, latest bool) (running bool) {
	listed := map[string]bool{}
	for _, sh := range shards {
		listed[aws.ToString(sh.ShardId)] = true
	}
	for _, sh := range shards {
		id, parent := aws.ToString(sh.ShardId), aws.ToString(sh.ParentShardId)
		if m.done[id] || m.started[id] || listed[parent] && !m.done[parent] {
			continue
		}
		m.started[id] = true
		r := &shardReader{streamMapping: m, id: id, log: m.log.With("shard", id), from: position{kind: streamtypes.ShardIteratorTypeTrimHorizon}}
		if latest {
			r.from.kind, r.since = streamtypes.ShardIteratorTypeLatest, time.Now().Add(-clockSkew)
		}
		m.shards.Go(func() {
			if r.run(ctx) {
				select {
				case m.ended <- id:
				case <-ctx.Done():
				}
			}
		})
	}
	for id := range m.started {
		switch {
		case !m.done[id]:
			running = true
		case !listed[id]:
			delete(m.started, id)
			delete(m.done, id)
		}
	}
	return running
}

// streamTimeout is how long a read of the stream may take, with the SDK's retries. On a dead connection it takes longer.
const streamTimeout = time.Minute

// describe reads all pages of the stream's description.
func (m *streamMapping) describe(ctx context.Context) (*streamtypes.StreamDescription, error) {
	var all *streamtypes.StreamDescription
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &m.cfg.StreamARN}
	for {
		callCtx, cancel := context.WithTimeout(ctx, streamTimeout)
		out, err := m.client.DescribeStream(callCtx, in)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("esm: describe stream: %w", err)
		}
		d := out.StreamDescription
		if all == nil {
			all = d
		} else {
			all.Shards = append(all.Shards, d.Shards...)
		}
		if in.ExclusiveStartShardId = d.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			return all, nil
		}
	}
}

func isStreamGone(err error) bool {
	_, gone := errors.AsType[*streamtypes.ResourceNotFoundException](err)
	return gone
}

// drop tells of records that will not be invoked again.
func (m *streamMapping) drop(records []string, why string, cause error) {
	m.log.Warn("esm: records dropped", "why", why, "error", cause, "records", records)
	if m.cfg.OnDropped == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("esm: OnDropped panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	m.cfg.OnDropped(records, why)
}
