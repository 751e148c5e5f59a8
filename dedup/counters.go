package dedup

import (
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
)

// counters are the fields of Stats while they are counted.
type counters struct {
	first, completed, inProgress, takeovers, leasesLost atomic.Int64
	ownRetries, completeFailed, storeErrors, cacheHits  atomic.Int64
	foreign                                             atomic.Int64
	keySources                                          [sqsonce.KeyFromFunction + 1]atomic.Int64
}

// Stats returns what has been counted since New. Numbers of one moment need not add up while deliveries are at work.
func (o *Once) Stats() Stats {
	c := &o.counts
	keys := func(s sqsonce.KeySource) int64 { return c.keySources[s].Load() }
	return Stats{
		First:          c.first.Load(),
		Completed:      c.completed.Load(),
		InProgress:     c.inProgress.Load(),
		Takeovers:      c.takeovers.Load(),
		LeasesLost:     c.leasesLost.Load(),
		OwnRetries:     c.ownRetries.Load(),
		CompleteFailed: c.completeFailed.Load(),
		StoreErrors:    c.storeErrors.Load(),
		CacheHits:      c.cacheHits.Load(),
		ForeignWriters: c.foreign.Load(),
		KeySources: KeySources{
			Attribute:   keys(sqsonce.KeyFromAttribute),
			CloudEvents: keys(sqsonce.KeyFromCloudEvents),
			MessageID:   keys(sqsonce.KeyFromMessageID),
			DedupID:     keys(sqsonce.KeyFromDedupID),
			Function:    keys(sqsonce.KeyFromFunction),
		},
	}
}
