// Package sqstest is a conformance suite of SQS, as its users meet it: a case for every rule of delivery, order,
// deduplication and failure that AWS documents, run through the AWS SDK against any server.
//
//	func TestSQS(t *testing.T) {
//		sqstest.Run(t, sqstest.Backend{
//			Virtual: true,
//			New: func(t *testing.T) *sqs.Client {
//				srv := memsqs.New()
//				t.Cleanup(srv.Close)
//				return sqs.New(sqs.Options{HTTPClient: &http.Client{Transport: srv}, ...})
//			},
//		})
//	}
//
// A backend declares the cases that it is known to fail, each with a reason. A declared case that passes is a failure:
// the list never rots.
//
// # Sources
//
// Each case names what it rests on:
//
//   - API: the page API_<name> of the Amazon SQS API Reference,
//     https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/
//   - Guide: the page of that name in the Amazon SQS Developer Guide,
//     https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
//   - Recorded: answers of AWS itself that the tests of LocalStack (tests/aws/services/sqs) keep as snapshots.
//
// Where AWS says nothing there is no case, unless its text allows one answer only.
package sqstest
