package redisstore

import "github.com/redis/go-redis/v9"

// Scripts are the store's scripts by their names, for tests that break one.
var Scripts = map[string]*redis.Script{
	"acquire": acquireScript, "renew": renewScript, "complete": completeScript, "release": releaseScript,
}

// Sources are the texts of Scripts without Clock.
var Sources = map[string]string{
	"acquire": acquireSource, "renew": renewSource, "complete": completeSource, "release": releaseSource,
}

// Clock is the text that comes before every script.
var Clock = clockSource

// Explain is explain.
var Explain = explain
