package redisstore

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// Every step of a record's life is one script on one key: Redis runs it alone, so that nothing happens between what it
// reads and what it writes, and a cluster runs it where the key is. The scripts take durations and no times.
var (
	acquireScript  = load(acquireSource)
	renewScript    = load(renewSource)
	completeScript = load(completeSource)
	releaseScript  = load(releaseSource)
	deleteScript   = load(deleteSource)
	inspectScript  = load(inspectSource)
)

var (
	//go:embed script/clock.lua
	clockSource string
	//go:embed script/acquire.lua
	acquireSource string
	//go:embed script/renew.lua
	renewSource string
	//go:embed script/complete.lua
	completeSource string
	//go:embed script/release.lua
	releaseSource string
	//go:embed script/delete.lua
	deleteSource string
	//go:embed script/inspect.lua
	inspectSource string
)

func load(source string) *redis.Script { return redis.NewScript(clockSource + source) }
