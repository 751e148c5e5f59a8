// Package s3payload keeps bodies that are too large for a queue in S3, in the format of AWS's extended clients: the message
// has a pointer to the object.
//
// A [Publisher] puts a large body into S3 and publishes the pointer. [Resolve] is the consumer's middleware, which gives the
// handler the object's content. Each works with the extended clients for Java and Python on the other side:
//
//	Body                  ["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"...","s3Key":"..."}]
//	ExtendedPayloadSize   attribute, Number: the bytes of the body
//
// The legacy names of the class (com.amazon.sqs.javamessaging.MessageS3Pointer) and of the attribute (SQSLargePayloadSize) are
// read too. The receipt handle stays SQS's own: the extended clients put the object's name into it, to delete the object with
// the message, and so only for themselves.
//
// # Where Resolve belongs
//
// Inside of [sqsonce.OpenEnvelope], since the pointer may be in an envelope; outside of dedup, since a key may be in the body
// (CloudEvents), and dedup.Options.PayloadHash hashes the body:
//
//	handler, err := s3payload.Resolve(once.Handler(h), client, []string{"orders-payloads"})
//	w, err := sqsworker.New(sqsClient, queueURL, sqsonce.OpenEnvelope(handler))
//
// Where the objects hold envelopes, such as structured CloudEvents, a second Unwrap belongs around once.Handler.
//
// Then a duplicate reads its object again, and one whose object is gone fails. Where all keys are attributes, as those of a
// Publisher's events are, Resolve may also be inside of dedup: a duplicate of a completed event makes no request to S3.
//
// While the object is read the worker keeps the message hidden, as while any handler runs. A function must read it within its
// timeout, and the read holds no record lease where Resolve is outside of dedup. S3 being away is no try of a message
// ([sqsonce.ErrUnavailable]): the worker holds the message, a function delays it, and messages without a pointer go on.
//
// # The bucket
//
// Use a bucket, or a prefix of one, for nothing but payloads: whoever may send to the queue chooses which objects of the
// buckets of Resolve the handler gets.
//
// Nothing here deletes objects. A message that is deleted may come again, from the producer or out of a dead-letter queue,
// and needs its object then; so do the messages of other queues behind the same topic. A lifecycle rule of the bucket ends the
// objects:
//
//	{"Rules": [{"ID": "payloads", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30},
//	  "NoncurrentVersionExpiration": {"NoncurrentDays": 1}}]}
//
// The days must cover the longest time in which a message can come back, as dedup.Options.Retention must; 30 go with its
// default of 29 days. They begin with the last put: an event that is published again writes its object again. Turn the
// deletion of the extended clients off where they consume the same messages (cleanupS3Payload in Java; in Python it is off).
//
// # Permissions
//
//	publisher   s3:PutObject on the objects
//	consumer    s3:GetObject on the objects, s3:ListBucket on the bucket
//
// Without s3:ListBucket S3 answers AccessDenied for a missing object, and nothing can tell it from a role that lacks
// s3:GetObject. With a customer-managed KMS key the publisher needs kms:GenerateDataKey and the consumer kms:Decrypt.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
package s3payload
