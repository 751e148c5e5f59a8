// Command sqsonce is for operators: it shows what lies in a dead-letter queue and why, and reads, frees and completes the
// records of events. It knows records in DynamoDB, and keys that Message.Key makes. Command sqsonce-full knows SQL and Redis too. For
// other keys and stores see package cli.
package main

import "github.com/sqsonce/sqsonce/cmd/sqsonce/cli"

func main() { cli.Main() }
