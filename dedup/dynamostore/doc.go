// Package dynamostore keeps the records of package dedup in DynamoDB, and commits a handler's own DynamoDB writes together
// with them.
//
// [Store] is a [dedup.Store]. Every change of a record is one conditional write. A first delivery consumes two write units
// (acquire and complete), and a duplicate one. [Inbox] replaces dedup.Once if the handler's effect is in DynamoDB: the
// handler's writes and the completion of the record are one transaction, so that a crash leaves both or neither.
//
// The documentation of [Store] describes batches, frozen processes, retries and clocks. [Stats] has the cost, and
// [PowertoolsKey] the use together with Powertools for AWS Lambda. docs/protocol.md has the conditions of all writes.
//
// # The table
//
// The partition key is the string attribute id. The table doesn't have a sort key. TTL is on the attribute [TTLAttribute].
// [CreateTable] makes such a table, and [Store.Check] checks one. In CloudFormation:
//
//	Type: AWS::DynamoDB::Table
//	Properties:
//	  BillingMode: PAY_PER_REQUEST
//	  AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
//	  KeySchema: [{AttributeName: id, KeyType: HASH}]
//	  TimeToLiveSpecification: {AttributeName: expiration, Enabled: true}
//
// docs/protocol.md, section 2, lists the attributes of a record. The item of a key of a [NewCounter] is a released record with two
// more attributes:
//
//	tat                     N  time of the next token + the tolerance of a burst, microseconds of the epoch
//	line                    N  the next place in the line, microseconds of the epoch
//
// A global table with multi-Region eventual consistency (MREC, the default) doesn't work with consumers in several
// Regions, because a condition is checked against its own Region's copy. With strong consistency (MRSC) a condition
// sees all Regions. DynamoDB then has neither TTL, so that you delete expired records, nor transactions, so that Inbox
// fails.
//
// # Permissions
//
// docs/stores.md lists the permissions of workers, functions, inboxes and operators. If the role lacks one of the two for
// PartiQL, the store turns batches off for five minutes at each refusal. Without dynamodb:GetItem it sends a conditional
// update instead of a read. A transaction needs only the permissions of its writes.
package dynamostore
