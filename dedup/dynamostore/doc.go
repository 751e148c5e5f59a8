// Package dynamostore keeps the records of package dedup in DynamoDB, and commits a handler's own DynamoDB writes together
// with them.
//
// [Store] is a [dedup.Store]. Every change of a record is one conditional write. A first delivery consumes two write units
// (acquire and complete), a duplicate one. [Inbox] takes the place of dedup.Once where the handler's effect is in DynamoDB:
// the handler's writes and the completion of the record are one transaction, so that a crash leaves both or neither.
//
// # The table
//
// The partition key is the string attribute id, and there is no sort key. TTL is on the attribute [TTLAttribute].
// [CreateTable] makes such a table, and [Store.Check] checks one. In CloudFormation:
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
//	in_progress_expiration  N  end of the record lease, milliseconds of the epoch; 0: released
//	expiration              N  end of retention, seconds of the epoch
//	owner                   S  the delivery; stays after a release, and so refuses late copies of its requests
//	fence                   N  grows with every owner
//	receive_count           N  receive count at the last acquire
//	error                   S  the last failure, at most 256 bytes
//	data, validation        S  result and payload hash, where used
//	tx                      S  token of the transaction that completed the record
//
// A global table does not work with consumers in several Regions: a condition is checked against its own Region's copy.
//
// # Permissions
//
// A worker needs dynamodb:UpdateItem on the table, and for batches dynamodb:PartiQLInsert, PartiQLUpdate and GetItem.
// Without the two for PartiQL the store turns batches off for five minutes at each refusal, and logs a warning once.
// Without GetItem it sends a conditional update where it would read. An Inbox needs the permission of each write of its handlers on the
// written table: dynamodb:PutItem, UpdateItem, DeleteItem or ConditionCheckItem. A transaction has no permission of its
// own. [Store.Check] needs dynamodb:DescribeTable and DescribeTimeToLive, and [CreateTable] also dynamodb:CreateTable and
// UpdateTimeToLive.
//
// Operators need dynamodb:GetItem for [Store.Inspect], UpdateItem for [Store.Reopen], Scan for [Store.List] and DeleteItem for
// [Store.Delete].
//
// # Batches
//
// Acquires and completes of different events that come within a millisecond ([Options.Linger]) are sent as one
// BatchExecuteStatement with up to 25 statements. With 64 busy handlers a message costs about a tenth of a request instead
// of two, and less CPU time in the client. The write units are the same.
//
//   - A delivery with a receive count above 1, a completion with a result or a payload hash, a renewal and a release are
//     sent singly, and so is the only statement of a batch.
//   - A store with no other delivery in progress does not wait for others.
//   - A duplicate in a batch costs one read unit and one request more than one that is sent singly.
//   - An error of a statement is returned to its own caller only. After an unknown outcome each write is sent again singly,
//     with the same values.
//
// No goroutine runs between calls, and there is nothing to close.
//
// # Frozen processes
//
// Lambda freezes a process between invocations. When a handler's context ends during an acquire, the delivery ends within
// 240 ms. By then the lease that was granted is released, where DynamoDB answers in time. A process that
// is frozen while acquires wait in a batch does not send those whose lease is over when it is thawed. After 20 s without
// a request the idle connections are not used again, with any client that uses net/http's transport: each of them that
// broke in the meantime would cost a timeout.
//
// # Cost
//
// Prices are those of on-demand tables in us-east-1 (https://aws.amazon.com/dynamodb/pricing/on-demand/): 0.625 dollars for
// a million write units, 0.125 for a million read units. [Store.Stats] counts the units that were consumed.
//
//	first delivery                    2 write units: acquire, complete; 1.25 dollars for a million
//	with an Inbox                     1 to acquire, 2 for the record in the transaction, and twice the handler's writes
//	duplicate                         1 write unit; in a batch 1 read unit more
//	duplicate known in this process   0: see dedup.Options.CacheSize
//	delivery after a failure          2; the failed one consumed 2: acquire, release
//	renewal                           1 for each third of the lease
//
// With a result that makes the record larger than 1 KB, each write consumes a unit for each KB, also the write of a
// duplicate.
//
// # Retries
//
// The store makes up to eight attempts at a request, with full jitter, which takes about two seconds where failures are
// quick. A request that is not answered is given up after 2 s, then 4 s, 8 s, 10 s. The store retries throttling, server
// errors, broken connections and conflicts with transactions. The SDK's own retries are off for these requests. After an
// unknown outcome the next attempt repeats the same values, and the condition recognises what an earlier one has written.
//
// # Clocks
//
// DynamoDB's clock decides takeovers: the store learns it from the Date of the newest answer that has a request ID of
// DynamoDB (x-amzn-RequestId). A proxy must pass both headers on as they are. A lease ends for its holder before
// it ends for any other owner, which may take it over about 2 to 4 s after its end. How a host's clock is set has one
// effect: before the first answer a host whose clock is ahead asks for a lease that is longer by as much. The check of
// signatures limits that to five minutes, and it delays only the takeover after a crash.
//
// # Powertools for AWS Lambda
//
// The first five attributes are those of Powertools' idempotency utility, with their meanings: both programs can use one
// table, and each respects the other's records. But Powertools does not check ownership: it updates and deletes without a
// condition. While a function of Powertools uses the same key, a completed event may run again. A function that returns
// after its timeout completes the record of the owner that took over, and one that fails deletes it. The holder of that
// record gets [dedup.ErrForeignWriter] with its next write where it can be recognised, and [sqsonce.ErrLeaseLost] always. A
// function that completes such a record also sets its end of retention; the holder's complete restores it.
//
// Where Powertools validates payloads (payloadValidationJmesPath) it refuses a completed event whose record has no hash of
// the payload: its function fails with IdempotencyValidationError. A dedup.Options.PayloadHash that returns [PowertoolsKey] of
// the same part of the payload stores the hash that Powertools for TypeScript computes.
//
// [PowertoolsKey] gives an event the key of Powertools for TypeScript. Its keyPrefix is then the consumer's name. A result
// of dedup.Do is JSON text for Powertools for TypeScript, whose own results are values. A completed message has no result.
// docs/migrate.md has the steps of a move.
package dynamostore
