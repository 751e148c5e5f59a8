// Package outbox publishes events that were committed with a transaction.
package outbox
