// Command sqsonce is for operators: it shows what lies in a dead-letter queue and why, and reads, frees and completes the
// records of events. It knows records in DynamoDB, and keys that Message.Key makes. For other stores and keys see package cli.
package main

import "github.com/sqsonce/sqsonce/cmd/sqsonce/cli"

func main() { cli.Main() }
