// Package dynamooutbox keeps an outbox in a DynamoDB table: the caller's transaction writes an event beside its other items, and
// a relay of package outbox publishes it, in the order of its group's commits, and deletes it.
//
// # The table
//
// One table takes any number of outboxes, which pay for each other's scans. It holds nothing but what is not published, so that
// it needs no index. It must have no TTL, and needs point-in-time recovery for the same reasons as the tables beside it.
// [CreateTable] makes such a table, and [Outbox.Check] checks one. In CloudFormation:
//
//	Type: AWS::DynamoDB::Table
//	Properties:
//	  BillingMode: PAY_PER_REQUEST
//	  AttributeDefinitions: [{AttributeName: pk, AttributeType: S}, {AttributeName: seq, AttributeType: N}]
//	  KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: seq, KeyType: RANGE}]
//	  StreamSpecification: {StreamViewType: KEYS_ONLY}
//
// The attributes of an item:
//
//	pk          S  the outbox's name, '#' and the group
//	seq         N  the event's place in its group: see [Outbox.Put]
//	id          S  the event's ID
//	source      S  the namespace that it was written for
//	payload     S  its body
//	type        S  its type; not there without one, as the next two
//	attributes  M  by name a map of type (S) and value (S or B)
//	trace       S  its AWSTraceHeader
//	created_at  N  when it was written, by the writer's clock, milliseconds of the epoch
//	v           N  1
//	parked      S  HALT or SKIP, on an event that SQS refused; and error S, parked_at N
//
// A global table with writers in several Regions is not supported: a condition is checked against its own Region's copy.
// Nobody has yet seen on AWS what [Outbox.Read] rests on, that a TransactGetItems of an item that a running transaction
// creates is cancelled. AWS documents that the two conflict.
//
// # Permissions
//
// A producer needs dynamodb:PutItem on the table. A relay needs dynamodb:Query, GetItem, Scan, BatchWriteItem, DeleteItem and
// UpdateItem, and for a stream DescribeStream, GetRecords, GetShardIterator and ListStreams. A relay that may read and not
// delete stops with [outbox.ErrDenied] after its first page.
//
// # Cost
//
// An event of at most 1 KB, with its key and attributes, consumes 2 write units in its transaction and 1 for its delete. A
// lone event that is drained takes a Query, a TransactGetItems (2 read units, none for the group's first event or where the
// relay has published the one before) and a BatchWriteItem. In busy outboxes a page of ten events shares a Query, and 25
// events of any groups a BatchWriteItem.
package dynamooutbox
