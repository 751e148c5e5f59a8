package statusreport

// Kind says how a number changes.
type Kind string

const (
	Counter Kind = "counter" // it only grows, until the process ends
	Gauge   Kind = "gauge"
)

// Field is one number of [Stats].
type Field struct {
	Of   string // "worker", "consumer", "store", "relay" or "publisher"
	Go   string // the field of the component's Stats, as Go writes it
	Name string // in Stats; a unit at its end, "timestamp_seconds" is Unix time
	Kind Kind
	Help string
}

// Fields are all numbers of all components. It is not to be changed.
var Fields = []Field{
	// sqsworker.Stats
	{"worker", "Received", "received", Counter, "Messages received, second copies included."},
	{"worker", "Done", "done", Counter, "Handlers that returned nil."},
	{"worker", "Skipped", "skipped", Counter, "Handlers that returned Skip: messages that needed no effect."},
	{"worker", "Failed", "failed", Counter, "Handlers that failed. An event in progress elsewhere is not a failure."},
	{"worker", "Retried", "retried", Counter, "Deliveries given back, held, or run again in this process, after their handler had run."},
	{"worker", "Rejected", "rejected", Counter, "Messages sent to the dead-letter queue."},
	{"worker", "Unavailable", "unavailable", Counter, "Handlers that returned ErrUnavailable: not a failure of their messages."},
	{"worker", "LeasesLost", "leases_lost", Counter, "Messages that another consumer may have had while they were in flight here."},
	{"worker", "Stuck", "stuck", Gauge, "Handlers that did not return within StopGrace after their context was cancelled."},
	{"worker", "InFlight", "in_flight", Gauge, "Messages received and not yet deleted, given back, lost or abandoned by the stop."},
	{"worker", "Running", "running", Gauge, "Messages whose handlers run, stuck ones included, unless the stop has abandoned them."},
	{"worker", "Waiting", "waiting", Gauge, "Messages that wait for a slot, or for the end of another message of their group."},
	{"worker", "Held", "held", Gauge, "Messages held in flight without a slot until they run again."},
	{"worker", "Aside", "aside", Gauge, "Held messages whose needs are unavailable while others are handled."},
	{"worker", "Suspect", "suspect", Gauge, "Held messages that were running in a process that crashed, and run apart from others soon."},
	{"worker", "InDoubt", "in_doubt", Gauge, "Held messages whose store or dependency is unavailable, while the worker does not know whether it is down for all."},
	{"worker", "Rejecting", "rejecting", Gauge, "Messages on their way to the dead-letter queue."},
	{"worker", "Deleting", "deleting", Gauge, "Messages that are done and whose deletes are not confirmed."},
	{"worker", "Releasing", "releasing", Gauge, "Messages given back, which is not confirmed."},
	{"worker", "Receiving", "receiving", Gauge, "Receives under way."},
	{"worker", "Concurrency", "concurrency", Gauge, "The limit of running. 0 before the worker begins to receive."},
	{"worker", "MaxInFlight", "max_in_flight", Gauge, "The limit of in_flight. 0 before the worker begins to receive."},
	{"worker", "Drained", "drained", Counter, "Handlers that returned during the stop."},
	{"worker", "Released", "released", Counter, "Messages given back without having been started."},
	{"worker", "Abandoned", "abandoned", Counter, "Messages that the stop left hidden until their visibility timeout ends."},
	{"worker", "Undeleted", "undeleted", Gauge, "Messages that are done but were not deleted. SQS may deliver them again."},
	{"worker", "Extended", "extended", Counter, "Extensions of messages that SQS confirmed in time."},
	{"worker", "NotExtended", "not_extended", Counter, "Extensions of messages that failed, or were confirmed too late."},
	{"worker", "Damaged", "damaged", Counter, "Messages received with another body than was sent."},
	{"worker", "Repeated", "repeated", Counter, "Messages deleted without a run, since this worker had handled them before."},
	{"worker", "Receives", "receives", Counter, "ReceiveMessage calls."},
	{"worker", "Unanswered", "unanswered", Counter, "ReceiveMessage calls without an answer. Their messages return after the visibility timeout."},
	{"worker", "Deletes", "deletes", Counter, "DeleteMessageBatch calls."},
	{"worker", "Extensions", "extensions", Counter, "ChangeMessageVisibilityBatch calls, those that give messages back included."},
	{"worker", "LastPoll", "last_poll_timestamp_seconds", Gauge, "When a receive last succeeded. 0: never."},
	{"worker", "OldestRunning", "oldest_running_seconds", Gauge, "How long the oldest running handler has run. 0: none runs."},

	// dedup.Stats
	{"consumer", "First", "first", Counter, "Handlers started for a new record, or after a release."},
	{"consumer", "Completed", "completed", Counter, "Deliveries of completed events: acknowledged, not run."},
	{"consumer", "InProgress", "in_progress", Counter, "Deliveries refused because another delivery of the event is in progress."},
	{"consumer", "Takeovers", "takeovers", Counter, "Handlers started after the last owner crashed."},
	{"consumer", "LeasesLost", "leases_lost", Counter, "Deliveries whose record was taken over, or whose lease ended before it could be renewed."},
	{"consumer", "OwnRetries", "own_retries", Counter, "Acquires granted before, whose first answer was lost."},
	{"consumer", "CompleteFailed", "complete_failed", Counter, "Handlers that succeeded and whose record could not be completed. Lost leases do not count."},
	{"consumer", "StoreErrors", "store_errors", Counter, "Store calls that failed."},
	{"consumer", "ForeignWriters", "foreign_writers", Counter, "Deliveries whose record a program wrote that does not check ownership."},
	{"consumer", "CacheHits", "cache_hits", Counter, "Duplicates that were decided without a request."},
	{"consumer", "Connections", "connections", Gauge, "The limit of the store's pool of connections. 0: none."},
	{"consumer", "KeySources.Attribute", "key_sources_attribute", Counter, "Keys of the attribute event-key, or of event-id with event-source."},
	{"consumer", "KeySources.EventID", "key_sources_event_id", Counter, "Keys of the queue's ARN and the attribute event-id: another one in another queue."},
	{"consumer", "KeySources.CloudEvents", "key_sources_cloud_events", Counter, "Keys of a CloudEvents source and id."},
	{"consumer", "KeySources.SNS", "key_sources_sns", Counter, "Keys of the topic's ARN and SNS's message ID."},
	{"consumer", "KeySources.EventBridge", "key_sources_event_bridge", Counter, "Keys of the source and ID of EventBridge's event."},
	{"consumer", "KeySources.MessageID", "key_sources_message_id", Counter, "Keys of the message ID: a redrive or a second send of the event has another one."},
	{"consumer", "KeySources.DedupID", "key_sources_dedup_id", Counter, "Keys of the MessageDeduplicationId: Options.TrustDedupID."},
	{"consumer", "KeySources.Function", "key_sources_function", Counter, "Keys of Options.Key."},

	// dynamostore.Stats
	{"store", "OwnRetries", "own_retries", Counter, "Acquires whose reply was lost, and which the record recognised when they were sent again."},
	{"store", "ForeignRecords", "foreign_records", Counter, "Records written, or completed under an owner of this store, by a program that does not check ownership."},
	{"store", "Batches", "batches", Counter, "Requests with several statements."},
	{"store", "Statements", "statements", Counter, "Statements in requests with several."},
	{"store", "Fallbacks", "fallbacks", Counter, "Statements refused for a reason that is not their record's, and then sent singly."},
	{"store", "WriteUnits", "write_units", Counter, "Write capacity units that all answered requests consumed."},
	{"store", "ReadUnits", "read_units", Counter, "Read capacity units that all answered requests consumed."},

	// outbox.Stats and outbox.Backlog
	{"relay", "Published", "published", Counter, "Events that SQS confirmed. A copy counts again."},
	{"relay", "Deleted", "deleted", Counter, "Events that were deleted after SQS had confirmed them."},
	{"relay", "Copies", "copies", Counter, "Sends over 285 s after an unanswered one of the same event."},
	{"relay", "Unknown", "unknown", Counter, "Sends without an answer."},
	{"relay", "Refused", "refused", Counter, "Events that SQS refused. Each attempt counts."},
	{"relay", "Halted", "halted", Counter, "Visits that ended at a halted event."},
	{"relay", "Unsettled", "unsettled", Counter, "Reads that could not confirm the events that follow."},
	{"relay", "Rounds", "rounds", Counter, "Looks for all groups."},
	{"relay", "Reads", "reads", Counter, "Reads of a group's events."},
	{"relay", "Probes", "probes", Counter, "Requests of the store for the event before the first one, where it has any."},
	{"relay", "Stale", "stale", Counter, "Pages of which a part was too old to be sent."},
	{"relay", "Undeleted", "undeleted", Gauge, "Events that SQS confirmed, and whose delete is still owed."},
	{"relay", "WrongSource", "wrong_source", Counter, "Visits that ended at an event of another namespace."},
	{"relay", "Began", "began_timestamp_seconds", Gauge, "When the running Run began. 0: none runs."},
	{"relay", "Swept", "swept_timestamp_seconds", Gauge, "When a sweep last reached the end of the store. 0: none has since Run began or ended."},
	{"relay", "Backlog.Groups", "backlog_groups", Gauge, "Groups with events, as the last sweep saw them."},
	{"relay", "Backlog.Oldest", "backlog_oldest_seconds", Gauge, "Age of the oldest event that is not skipped, at the last sweep. 0: none."},
	{"relay", "Backlog.Halted", "backlog_halted", Gauge, "First halted events of their groups that the last sweep saw."},
	{"relay", "Backlog.Skipped", "backlog_skipped", Gauge, "Skipped events before these that the last sweep saw."},

	// fifo.Stats
	{"publisher", "Published", "published", Counter, "Events that SQS accepted."},
	{"publisher", "Failed", "failed", Counter, "Events that were not accepted."},
	{"publisher", "Unknown", "unknown", Counter, "Failed events that may be in the queue."},
	{"publisher", "Halted", "halted", Counter, "Failed events behind another one of their group."},
	{"publisher", "Repeated", "repeated", Counter, "Attempts after an event's first."},
	{"publisher", "Throttled", "throttled", Counter, "Requests in which SQS throttled the queue."},
	{"publisher", "Requests", "requests", Counter, "Requests to SQS."},
	{"publisher", "Pending", "pending", Gauge, "Events that the publisher accepted and that have no result yet."},
	{"publisher", "PendingBytes", "pending_bytes", Gauge, "Bytes of the pending events, as Options.MaxBytes counts."},
	{"publisher", "Waiting", "waiting", Gauge, "Events that wait for capacity."},
	{"publisher", "Active", "active", Gauge, "Requests under way."},
	{"publisher", "Oldest", "oldest_seconds", Gauge, "How long ago the oldest pending event was accepted. 0: none is pending."},
}
