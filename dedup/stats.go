package dedup

import (
	"sync/atomic"

	"github.com/sqsonce/sqsonce"
)

// Stats counts the work of a Once since New.
type Stats struct {
	First          int64 `help:"Handlers started for a new record, or after a release."`
	Completed      int64 `help:"Deliveries of completed events: acknowledged, not run."`
	InProgress     int64 `help:"Deliveries refused because another delivery of the event is in progress."`
	Takeovers      int64 `help:"Handlers started after the last owner crashed."`
	LeasesLost     int64 `help:"Deliveries whose record was taken over, or whose lease ended before it could be renewed."`
	OwnRetries     int64 `help:"Acquires granted before, whose first answer was lost."`
	CompleteFailed int64 `help:"Handlers that succeeded and whose record could not be completed. Lost leases do not count."`
	StoreErrors    int64 `help:"Store calls that failed."`
	ForeignWriters int64 `help:"Deliveries whose record a program wrote that does not check ownership."`
	CacheHits      int64 `help:"Duplicates that were decided without a request."`
	Connections    int64 `help:"The limit of the store's pool of connections (sql.DB.SetMaxOpenConns). 0: none."`
	// ServerConnections is for doctor, which adds the pools of all processes.
	ServerConnections int64 `help:"Connections that the store's server allows to all programs. 0: unknown."`
	// KeySources is by [sqsonce.KeySource]: KeySources[sqsonce.KeyFromMessageID] stays 0 where every event has an ID of its own.
	KeySources [sqsonce.KeyFromS3 + 1]int64 `help:"Deliveries whose key came from there: see sqsonce.KeySource."`
}

// counters are the fields of Stats while they are counted.
type counters struct {
	first, completed, inProgress, takeovers, leasesLost atomic.Int64
	ownRetries, completeFailed, storeErrors, cacheHits  atomic.Int64
	foreign                                             atomic.Int64
	keySources                                          [sqsonce.KeyFromS3 + 1]atomic.Int64
}

// Stats returns the counts since New. While deliveries run, the numbers need not add up.
func (o *Once) Stats() Stats {
	c := &o.counts
	s := Stats{
		First:             c.first.Load(),
		Completed:         c.completed.Load(),
		InProgress:        c.inProgress.Load(),
		Takeovers:         c.takeovers.Load(),
		LeasesLost:        c.leasesLost.Load(),
		OwnRetries:        c.ownRetries.Load(),
		CompleteFailed:    c.completeFailed.Load(),
		StoreErrors:       c.storeErrors.Load(),
		CacheHits:         c.cacheHits.Load(),
		ForeignWriters:    c.foreign.Load(),
		Connections:       int64(o.connections()),
		ServerConnections: int64(o.allowed()),
	}
	for source := range s.KeySources {
		s.KeySources[source] = c.keySources[source].Load()
	}
	return s
}
