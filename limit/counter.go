package limit

import "github.com/sqsonce/sqsonce/internal/counting"

// Counter counts for all processes of a fleet. Each store of package dedup has one: dynamostore.NewCounter, sqlstore.NewCounter,
// redisstore.NewCounter and, for tests, memstore.NewCounter. Counters of your own can't be made.
type Counter interface {
	counting.Counter
}
