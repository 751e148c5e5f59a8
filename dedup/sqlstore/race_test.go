//go:build race

package sqlstore

import "time"

// unit is storetest's. Under the race detector SQLite, which is all Go here, takes a good part of a second for what takes
// it a millisecond.
const unit = 8 * time.Second
