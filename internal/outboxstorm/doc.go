// Package outboxstorm runs relays over an outbox in virtual time while everything fails, and checks the promises of
// docs/protocol-outbox.md: nothing lost, nothing invented, first acceptances in the order of the commits, copies only where two
// sends were five minutes apart. An outbox has two tests of it: [NoProblem], and [Sees] for each [Defect] that it
// can have.
package outboxstorm
