//go:build !race

package sqlstore

import "time"

// unit is storetest's lease.
const unit = 4 * time.Second
