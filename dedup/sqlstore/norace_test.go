//go:build !race

package sqlstore

import "time"

// unit is storetest's.
const unit = 2 * time.Second
