// Package fleet tests everything together: publishers, workers and functions that are processes, on an SQS and a DynamoDB behind
// networks that fail. A seed draws who is killed, stopped and deployed, whose clock is wrong, and how networks fail. An oracle, which
// fails never, hears of each run of a handler, and compares all that happened with the protocol.
package fleet
