// Package dynamooutbox keeps an outbox in a DynamoDB table. Your transaction writes an event alongside its other items, and a
// relay of package outbox publishes it, in the order of its group's commits, and deletes it.
//
// # The table
//
// One table can have any number of outboxes, which pay for each other's scans. It contains only unpublished events, so that it
// doesn't need an index. It must not have a TTL, and needs point-in-time recovery for the same reasons as your other tables.
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
//	type        S  its type; missing without one, as the next two
//	attributes  M  by name a map of type (S) and value (S or B)
//	trace       S  its AWSTraceHeader
//	created_at  N  when it was written, by the writer's clock, milliseconds of the epoch
//	v           N  1
//	parked      S  HALT or SKIP, on an event that SQS refused; and error S, parked_at N
//
// A global table with writers in several Regions is not supported, because DynamoDB checks a condition against its own Region's
// copy. [Outbox.Read] relies on the rule that DynamoDB cancels a TransactGetItems of an item that a running transaction
// creates. AWS documents that the two conflict. It has not yet been observed on AWS.
//
// docs/outbox.md has the permissions and the costs. A lone event that is drained costs a Query, a TransactGetItems of 2 read
// units and a BatchWriteItem. In busy outboxes a page of ten events shares a Query, and 25 events share a BatchWriteItem.
package dynamooutbox
