// Package outboxstorm runs relays over an outbox in virtual time while everything fails, and checks the promises of
// docs/protocol-outbox.md: nothing lost, nothing invented, first acceptances in the order of the commits, copies only where two
// sends were five minutes apart. An outbox is proved with it by two tests: [Run] finds no problem in any [Plan], and finds one in
// some plan with each [Defect].
package outboxstorm
