// Package dynamostore keeps the records of package dedup in DynamoDB, and commits a handler's own DynamoDB writes with
// them.
//
// [Store] is a [dedup.Store]: every step of a record's life is one conditional write, and a first delivery costs two
// write units (one to acquire, one to complete), a duplicate one. [Inbox] replaces dedup.Once where the handler's effect
// is in DynamoDB: its writes and the completion of the record are one transaction, so that the effect is there exactly
// once whatever crashes.
//
// # The table
//
// The partition key is the string attribute id; there is no sort key. TTL is on the attribute [TTLAttribute]. [CreateTable]
// makes such a table, [Store.Check] tells whether one is. In CloudFormation:
//
//	Type: AWS::DynamoDB::Table
//	Properties:
//	  BillingMode: PAY_PER_REQUEST
//	  AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
//	  KeySchema: [{AttributeName: id, KeyType: HASH}]
//	  TimeToLiveSpecification: {AttributeName: expiration, Enabled: true}
//
// The attributes of a record:
//
//	id                      S  the consumer's name, '#' and the event's key
//	status                  S  INPROGRESS or COMPLETED
//	in_progress_expiration  N  end of the lease, milliseconds of the epoch; 0: released
//	expiration              N  end of retention, seconds of the epoch
//	owner                   S  the delivery attempt; stays after a release and refuses late copies of its requests
//	fence                   N  grows with every owner
//	attempts                N  receive count at the last acquire
//	error                   S  the last failure, at most 256 bytes
//	data, validation        S  result and payload hash, where used
//	tx                      S  token of the transaction that completed the record
//
// A global table does not work across Regions: conditions see their own Region's copy.
//
// # Permissions
//
// A worker needs dynamodb:UpdateItem on the table, and for shared calls dynamodb:PartiQLInsert, PartiQLUpdate and GetItem.
// Without the two for PartiQL the store goes back to single calls at the first refusal and logs it once; without GetItem
// an update decides what a read would have. An Inbox needs, on each table that its handlers write, the permission
// of the write: dynamodb:PutItem, UpdateItem, DeleteItem or ConditionCheckItem; a transaction has none of its own.
// [Store.Inspect] needs dynamodb:GetItem, [Store.Delete] dynamodb:DeleteItem, [Store.Check] dynamodb:DescribeTable and
// DescribeTimeToLive, [CreateTable] in addition dynamodb:CreateTable and UpdateTimeToLive.
//
// # Shared calls
//
// Records of different events that are acquired or completed within a millisecond ([Options.Linger]) share one call of
// up to 25 statements: at 64 handlers that saturate the store, a message costs about a tenth of a request instead of two,
// and the client's CPU time falls with it. Write units are the same.
//
//   - A delivery that comes for the second time, a completion with a result or a payload hash, a renewal and a release
//     have calls of their own, and so has whatever found no company.
//   - A store with no other delivery at work does not wait.
//   - A duplicate that shared a call costs one read unit more than one that did not, and one request more.
//   - A statement's failure is its own caller's. What a call leaves unknown is repeated by itself, with the same values.
//
// Nothing runs between calls and there is nothing to close.
//
// # Frozen processes
//
// Lambda freezes a process between invocations. Acquires that are under way when the handlers are told to end are drained:
// [Store.Acquire] returns within 200 ms, and what was granted is released by then, where DynamoDB answers in time. A process
// that is frozen while records wait to be sent drops the acquires whose lease is over when it is thawed. Connections that
// were idle while nothing was sent for 20 s are not used again, with any client around net/http's transport: those that
// died in the meantime would each cost a timeout.
//
// # Cost
//
// A write unit for each line below, a read unit where it says so; on demand in us-east-1 a million write units cost 0.625
// dollars and a million read units 0.125. [Store.Stats] has what was consumed.
//
//	first delivery                    2 write units: acquire, complete; 1.25 dollars for a million
//	with an Inbox                     1, and 2 for the record and twice the user's writes
//	duplicate                         1 write unit; in a shared call 1 read unit more
//	duplicate known in this process   0: see dedup.Options.CacheSize
//	delivery after a failure          2; the failed one cost 2: acquire, release
//	renewal                           1 for each third of the lease
//
// A result that makes the record larger than 1 KB costs a unit for each KB with every write, duplicates' included.
//
// # Retries
//
// The store makes up to eight attempts at a call, with full jitter, within about two seconds where failures are quick; a
// request that is not answered is given up after 2 s, then 4 s, 8 s, 10 s. It retries throttling, server errors, broken
// connections and conflicts with transactions. The SDK's own retries are off for these calls. Attempts after an unknown
// outcome repeat the same values, and the condition recognises what an earlier one has written.
//
// # Clocks
//
// Takeovers are decided by DynamoDB's clock, learnt from the Date of its answers, and a lease ends for its holder before
// it ends for anybody else. How a host's clock is set matters for one thing: until its store has had its first answer,
// the lease it asks for is as much longer as the host is ahead. Signatures limit that to five minutes, and only a crash
// would make it felt. A lease may be taken over about 2 to 4 s after its end.
//
// # Powertools for AWS Lambda
//
// The first five attributes are those of Powertools' idempotency utility, with their meanings: a table can be shared and
// each side respects the other's records. But Powertools updates and deletes without a condition. While one of its
// writers uses the same key, a completed event may run again: a function of theirs that outlives its time completes the
// record of whoever took over, and one that fails deletes it. A holder of ours whose record was so taken learns it at its
// next write.
//
// [PowertoolsKey] gives an event the key of Powertools for TypeScript; its keyPrefix is then the consumer's name. A result
// of dedup.Do reaches Powertools for TypeScript as JSON text, where its own results are values; a completed message has
// none. To move a consumer, let both run on one table with one key until no function of Powertools is left, and keep its
// records until their expiration.
package dynamostore
