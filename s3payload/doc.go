// Package s3payload keeps bodies that are too large for a queue in S3, in the format of AWS's extended clients. The message has
// a pointer to the object.
//
// A [Publisher] puts a large body into S3 and publishes the pointer. [Resolve] is the consumer's middleware, which gives the
// handler the object's content. Each works with the extended clients for Java and Python on the other side:
//
//	Body                  ["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"...","s3Key":"..."}]
//	ExtendedPayloadSize   attribute, Number: the bytes of the body
//
// Resolve also reads the legacy names of the class (com.amazon.sqs.javamessaging.MessageS3Pointer) and of the attribute
// (SQSLargePayloadSize). The receipt handle stays SQS's own. The extended clients put the object's name into it, to delete the
// object with the message, and so only for themselves.
//
// # Where Resolve belongs
//
// Put Resolve inside of [sqsonce.OpenEnvelope], since the pointer may be in an envelope. Put it outside of dedup, since a key
// may be in the body (CloudEvents), and dedup.Options.PayloadHash hashes the body:
//
//	handler, err := s3payload.Resolve(once.Handler(h), client, []string{"orders-payloads"})
//	w, err := sqsworker.New(sqsClient, queueURL, sqsonce.OpenEnvelope(handler))
//
// If the objects hold envelopes, such as structured CloudEvents, put a second OpenEnvelope around once.Handler.
//
// Then a duplicate reads its object again, and one whose object is gone fails. If all keys are attributes, as those of a
// Publisher's events are, you may also put Resolve inside of dedup. A duplicate of a completed event then makes no request to
// S3.
//
// While a handler reads the object, the worker keeps the message hidden, as while any handler runs. A function must read it
// within its timeout. If Resolve is outside of dedup, the read doesn't hold a record lease. If S3 is down, that doesn't count
// as an attempt of a message ([sqsonce.ErrUnavailable]). The worker holds the message, a function delays it, and messages
// without a pointer go on.
//
// # The bucket
//
// Use a bucket, or a prefix of one, only for payloads. Everyone who may send to the queue chooses the objects of the buckets of
// Resolve that the handler gets.
//
// This package doesn't delete objects. A deleted message may come again, from the producer or out of a dead-letter queue, and
// needs its object then. So do the messages of other queues behind the same topic. Expire the objects with a bucket lifecycle
// rule:
//
//	{"Rules": [{"ID": "payloads", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30},
//	  "NoncurrentVersionExpiration": {"NoncurrentDays": 1}}]}
//
// The days must cover the longest time in which a message can come back, as dedup.Options.Retention must. Use 30 with its
// default of 29 days. The days begin with the last put, and an event that is published again writes its object again. Turn off
// the deletion of the extended clients if they consume the same messages (cleanupS3Payload in Java, off by default in Python).
//
// A publisher needs s3:PutObject, a consumer s3:GetObject and on the bucket s3:ListBucket. Without the last one S3 answers
// AccessDenied for a missing object. A customer-managed KMS key needs kms:GenerateDataKey and kms:Decrypt.
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
package s3payload
