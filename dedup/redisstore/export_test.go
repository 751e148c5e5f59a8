package redisstore

import "github.com/redis/go-redis/v9"

// Scripts are the store's scripts by their names, for tests that break one.
var Scripts = map[string]*redis.Script{
	"acquire": acquireScript, "renew": renewScript, "complete": completeScript, "release": releaseScript,
}

// Sources are the texts of Scripts, without what they have in common.
var Sources = map[string]string{
	"acquire": acquireSource, "renew": renewSource, "complete": completeSource, "release": releaseSource,
}

// Clock is what they have in common.
var Clock = clockSource
