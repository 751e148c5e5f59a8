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
	KeySources        KeySources
}

// KeySources counts where the keys of deliveries came from: see [sqsonce.KeySource].
type KeySources struct {
	Attribute   int64 `help:"Keys of the attribute event-key, or of event-id with event-source."`
	EventID     int64 `help:"Keys of the queue's ARN and the attribute event-id: another one in another queue."`
	CloudEvents int64 `help:"Keys of a CloudEvents source and id."`
	SNS         int64 `help:"Keys of the topic's ARN and SNS's message ID."`
	EventBridge int64 `help:"Keys of the source and ID of EventBridge's event."`
	S3          int64 `help:"Keys of the change of an object, of a notification of S3."`
	MessageID   int64 `help:"Keys of the message ID: a redrive or a second send of the event has another one."`
	DedupID     int64 `help:"Keys of the MessageDeduplicationId: Options.TrustDedupID."`
	Function    int64 `help:"Keys of Options.Key."`
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
	keys := func(s sqsonce.KeySource) int64 { return c.keySources[s].Load() }
	return Stats{
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
		KeySources: KeySources{
			Attribute:   keys(sqsonce.KeyFromAttribute),
			EventID:     keys(sqsonce.KeyFromEventID),
			CloudEvents: keys(sqsonce.KeyFromCloudEvents),
			SNS:         keys(sqsonce.KeyFromSNS),
			EventBridge: keys(sqsonce.KeyFromEventBridge),
			S3:          keys(sqsonce.KeyFromS3),
			MessageID:   keys(sqsonce.KeyFromMessageID),
			DedupID:     keys(sqsonce.KeyFromDedupID),
			Function:    keys(sqsonce.KeyFromFunction),
		},
	}
}
