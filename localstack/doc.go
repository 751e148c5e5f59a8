// Package localstack starts an SQS and a DynamoDB for tests and local runs. It isn't the product LocalStack, but uses it, or
// another emulator, if you configure its endpoint. Otherwise both services run in memory, in this process.
//
//	stack, err := localstack.Start(ctx, func(o *localstack.Options) {
//		o.Queues = []localstack.Queue{{Name: "orders.fifo"}}
//		o.Tables = []string{"dedup"}
//	})
//
// In memory the SDK clients of a [Stack] call memsqs and memdynamodb through an http.RoundTripper. So your test may run in a
// testing/synctest bubble, where a long poll of 20 s doesn't take real time. Use [Stack.MemSQS] and [Stack.MemDynamoDB] to inject
// faults and to read the state in assertions. The command localaws serves both services to AWS clients in any language.
//
// The packages in this directory don't import packages of sqsonce. If they shared its rules, they would share its bugs.
//
// compose.yaml starts localaws, or LocalStack in the last release that works without an account.
package localstack
