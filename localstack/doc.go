// Package localstack starts an SQS and a DynamoDB for tests and local runs. If an endpoint is configured (LocalStack or
// another emulator), it uses that; otherwise both run in memory, in this process.
//
//	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
//		o.Queues = []localstack.Queue{{Name: "orders.fifo"}}
//		o.Tables = []string{"dedup"}
//	})
//
// In memory the SDK clients of a [Stack] call memsqs and memdynamodb through an http.RoundTripper. A test may therefore
// run in a testing/synctest bubble, where a long poll of 20 s takes no time. Use [Stack.MemSQS] and [Stack.MemDynamoDB] to
// inject faults and to read the state in assertions. The command localaws serves both services to AWS clients in any
// language.
//
// The packages in this directory import nothing of sqsonce: if they shared its rules, they would share its bugs.
//
// compose.yaml starts LocalStack in the last release that needs no account.
package localstack
