package dedup

// Stats counts what a Once has seen since New.
type Stats struct {
	First          int64 // handlers started for an event with no earlier holder, or after a release
	Completed      int64 // deliveries of completed events: acknowledged without running
	InProgress     int64 // deliveries refused because another was being handled
	Takeovers      int64 // handlers started after a holder vanished
	LeasesLost     int64 // attempts whose record was taken over, or whose lease ended unproven
	OwnRetries     int64 // own lost replies recognised
	CompleteFailed int64 // handlers that succeeded and whose record could not be completed, lost leases aside
	StoreErrors    int64 // store calls that failed
	ForeignWriters int64 // records met, or lost, that a program which knows no owners wrote: see Lease.Foreign
	CacheHits      int64 // duplicates answered from memory
	KeySources     KeySources
}

// KeySources counts where the keys of deliveries came from: see [sqsonce.KeySource].
type KeySources struct {
	Attribute   int64 // the event-key attribute, or event-id with event-source
	CloudEvents int64 // a CloudEvents source and id
	MessageID   int64 // the message ID: the event is another one after a redrive
	DedupID     int64 // the MessageDeduplicationId: Options.TrustDedupID
	Function    int64 // Options.Key
}
