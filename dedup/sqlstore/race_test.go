//go:build race

package sqlstore

import "time"

// unit is storetest's lease. Under the race detector SQLite, which is all Go here, needs a good part of a second for what
// takes a millisecond without it.
const unit = 8 * time.Second
