package esm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// lane invokes the batches of a part of a shard's items, one after the other. A shard has ParallelizationFactor of them.
type lane struct {
	*streamMapping
	log   *slog.Logger
	pages chan []streamRecord // closed at the end of the shard, or of the mapping
	rest  []streamRecord      // read, and not yet invoked
}

// run invokes batches until pages is closed and rest is empty, or ctx is cancelled.
func (l *lane) run(ctx context.Context) {
	for open := true; ctx.Err() == nil; {
		if len(l.rest) == 0 {
			if !open {
				return
			}
			l.rest, open = <-l.pages
			continue
		}
		if open = open && l.gather(ctx); ctx.Err() == nil {
			l.process(ctx, l.take(), 0)
		}
	}
}

// gather waits for more records until a batch is full or the batching window has passed. It returns false when no more come.
func (l *lane) gather(ctx context.Context) bool {
	if l.cfg.BatchingWindow == 0 {
		return true
	}
	window := time.NewTimer(l.cfg.BatchingWindow)
	defer window.Stop()
	for len(l.rest) < l.cfg.BatchSize && l.full() == len(l.rest) {
		select {
		case page, ok := <-l.pages:
			if !ok {
				return false
			}
			l.rest = append(l.rest, page...)
		case <-window.C:
			return true
		case <-ctx.Done():
			return true
		}
	}
	return true
}

// full returns how many of the records fit into one batch. One always does: two images of 400 KB are less than 6 MB.
func (l *lane) full() int {
	bytes := len(eventHead) + len(eventTail)
	for i, r := range l.rest {
		bytes += len(r.json) + len(",")
		if i > 0 && (i == l.cfg.BatchSize || bytes-len(",") > maxPayload) {
			return i
		}
	}
	return len(l.rest)
}

// take returns the next batch.
func (l *lane) take() []streamRecord {
	n := l.full()
	batch := slices.Clone(l.rest[:n])
	l.rest = l.rest[n:]
	return batch
}

// Pauses between the invocations of a batch that failed or was throttled; doubled with each.
const (
	minRetryPause = 500 * time.Millisecond
	maxRetryPause = 30 * time.Second
)

// process invokes a batch until its records have succeeded, or are dropped, or ctx is cancelled. Nothing of the lane passes
// it meanwhile.
func (l *lane) process(ctx context.Context, batch []streamRecord, retries int) {
	pause := minRetryPause
	for {
		if ctx.Err() != nil {
			return
		}
		if batch = l.young(batch); len(batch) == 0 {
			return
		}
		response, err := l.function.call(ctx, encodeStreamEvent(batch))
		throttled := errors.Is(err, ErrThrottled) // no try
		reported := false
		if err == nil {
			var failed []streamRecord
			if failed, reported, err = l.failed(batch, response); len(failed) == 0 {
				return
			}
			batch = failed
		}
		switch {
		case throttled:
			l.log.Debug("esm: function throttled", "pause", pause)
		case l.cfg.BisectOnError && !reported && len(batch) > 1:
			l.log.Warn("esm: invocation failed; the batch is divided", "error", err, "records", len(batch))
			half := len(batch) / 2
			l.process(ctx, batch[:half], retries)
			l.process(ctx, batch[half:], retries)
			return
		case l.cfg.MaximumRetryAttempts < 0 || l.cfg.MaximumRetryAttempts > 0 && retries == l.cfg.MaximumRetryAttempts:
			l.drop(sequences(batch), fmt.Sprintf("invoked %d times", retries+1), err)
			return
		default:
			retries++
			l.log.Warn("esm: invocation failed; the batch is invoked again", "error", err, "records", len(batch), "pause", pause)
		}
		sleep(ctx, pause)
		pause = min(2*pause, maxRetryPause)
	}
}

// young drops the records that are too old, and returns the others.
func (l *lane) young(batch []streamRecord) []streamRecord {
	var young, old []streamRecord
	for _, r := range batch {
		if time.Since(r.at) > l.cfg.MaximumRecordAge {
			old = append(old, r)
		} else {
			young = append(young, r)
		}
	}
	if len(old) > 0 {
		l.drop(sequences(old), fmt.Sprintf("older than %s", l.cfg.MaximumRecordAge), nil)
	}
	return young
}

// failed returns the records to invoke again after a response: from the lowest sequence number that it reports, which is the
// checkpoint. reported is false for a response that fails the batch as a whole.
func (l *lane) failed(batch []streamRecord, response []byte) (rest []streamRecord, reported bool, err error) {
	f, err := readFailures(response)
	if !l.cfg.ReportBatchItemFailures {
		if len(f.ids) > 0 {
			l.log.Warn("esm: response ignored because ReportBatchItemFailures is off; records that the function reported as failed are not invoked again", "failed", f.ids)
		}
		return nil, false, nil
	}
	if err != nil {
		return batch, false, fmt.Errorf("invalid response: %w", err)
	}
	if f.noKey {
		l.log.Warn("esm: response has no batchItemFailures; the whole batch has succeeded", "records", len(batch))
	}
	checkpoint := len(batch)
	for _, id := range f.ids {
		at := slices.IndexFunc(batch, func(r streamRecord) bool { return r.sequence == id })
		if at < 0 {
			return batch, false, fmt.Errorf("invalid response: %s names %q, which is no record of the batch", failuresKey, id)
		}
		checkpoint = min(checkpoint, at)
	}
	return batch[checkpoint:], true, errors.New("the function has reported failed records")
}
