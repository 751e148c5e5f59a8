package main

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// calls counts the calls of the last minute, by operation, in a bucket for each second.
type calls struct {
	mu      sync.Mutex
	buckets [60]struct {
		second int64
		n      map[string]int
	}
}

func (c *calls) count(r *http.Request, now time.Time) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if operation == "" || len(operation) > 64 {
		operation = "other"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.buckets[now.Unix()%60]
	if b.second != now.Unix() {
		b.second, b.n = now.Unix(), map[string]int{}
	}
	b.n[operation]++
}

func (c *calls) lastMinute(now time.Time) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := map[string]int{}
	for _, b := range c.buckets {
		if now.Unix()-b.second < 60 {
			for operation, n := range b.n {
				sum[operation] += n
			}
		}
	}
	return sum
}
