// Package localstack gives tests and local runs an SQS and a DynamoDB: an endpoint where one is configured (LocalStack
// and others), else both in memory, in this process.
//
//	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
//		o.Queues = []localstack.Queue{{Name: "orders.fifo"}}
//		o.Tables = []string{"dedup"}
//	})
//
// In memory the SDK clients of a [Stack] talk to memsqs and memdynamodb through an http.RoundTripper, so a test may run
// in a testing/synctest bubble, where a 20 s long poll takes no time; [Stack.MemSQS] and [Stack.MemDynamoDB] inject
// faults and answer assertions. The command localaws serves the same two services to any AWS client in any language.
//
// The packages below this directory import nothing of sqsonce: if they shared its rules, they would share its mistakes.
//
// compose.yaml starts LocalStack itself, pinned to the last release that needs no account.
package localstack
