package host

import (
	"cmp"
	"crypto/rand"
	"os"
	"strings"
	"sync"
)

const (
	processID = 8  // characters of base32: 40 random bits
	mostHost  = 32 // bytes
)

// Process names this process in the records of its events, in its log and its status: "HOST.ID".
var Process = sync.OnceValue(func() string {
	name := os.Getenv("AWS_LAMBDA_LOG_STREAM_NAME")
	if name == "" {
		name, _ = os.Hostname() // the ID alone tells processes apart
	}
	return processName(name, rand.Text()[:processID])
})

// processName is the name of a host's process. A log stream ends in the ID of its execution environment, and the name of a pod in what
// tells it from others.
func processName(host, id string) string {
	host, _, _ = strings.Cut(host, ".")
	host = host[max(0, len(host)-mostHost):]
	plain := func(r rune) rune {
		if isPlain(r) {
			return r
		}
		return '-'
	}
	return cmp.Or(strings.Map(plain, host), "host") + "." + id
}

func isPlain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// ValidProcess returns a process's name, or "" for any other text.
func ValidProcess(name string) string {
	host, id, _ := strings.Cut(name, ".")
	if host == "" || len(host) > mostHost || len(id) != processID || strings.ContainsFunc(host+id, func(r rune) bool { return !isPlain(r) }) {
		return ""
	}
	return name
}
