// Package stores measures the stores of package dedup in one run: see bench/STORES.md.
//
//	make bench-stores
//
// A message is an acquire and a complete, or with an inbox the whole transaction. The servers are other processes on this
// machine, with the durability that docs/stores.md asks for. CPU time is the client's. Dynoxide takes DynamoDB's place: its
// latency is that of a local process, not that of AWS.
package stores
