// Package stores measures the stores of package dedup beside one another, in one run: see docs/stores.md.
//
//	make bench-stores
//
// A message is an acquire and a complete, or with an inbox the whole transaction. Servers are processes of their own on
// this machine, with the durability that the document asks for; the CPU time is the client's alone. Dynoxide stands for
// DynamoDB: its latency is that of a local process, and says nothing of AWS's.
package stores
