// Package limit keeps handlers within limits: how many run at once and how many start in a second, for each tenant or for all
// messages, in one process or in a whole fleet.
//
//	limits, err := limit.New([]limit.Rule{{Name: "tenant", Plan: limit.Plan{Concurrency: 3}}})
//	handler := limit.Handler(limits, once.Handler(h))
//
// A message beyond a limit is postponed, see [sqsonce.Postpone]. Other messages go on, and the message's wait doesn't count as an
// attempt. A worker holds the message until its turn. A function gives it back until its place in the key's line.
//
// # One process or a fleet
//
// Without a [Counter] each process has the whole limit for itself, so five workers with a rate of 10 start 50 handlers a second.
// With a Counter, such as dynamostore.NewCounter, all processes share the limit. A process then takes a few starts at a time,
// ahead of their use. In any time T at most (T + 1 s) * N / Per + Burst handlers start, in all processes. With a Counter in
// DynamoDB it is (T + 2 s) * N / Per + Burst, because a process knows DynamoDB's clock to a second.
//
// # Order
//
// Under one key the message groups take turns. In a group the message with more receives goes first, then the order of
// receipt. A FIFO group keeps its order. Messages that their host can't hold, those of a function or of a sqlstore.Processor, start in
// the order of their places, those of all groups in one line.
package limit
