package dedup

import (
	"cmp"
	"crypto/rand"
	"os"
	"strings"
	"sync"
)

// An owner names its process, so that an operator sees which events were running where a process died: "RANDOM@HOST.ID".

const (
	atProcess = "@" // in an owner, before the process
	processID = 8   // characters of base32: 40 random bits
	mostHost  = 32  // bytes
)

func newOwner() string { return rand.Text() + atProcess + process() }

var process = sync.OnceValue(func() string {
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

// processOf returns the process that an owner names; "": none, because an earlier version, another program or an operator made it.
func processOf(owner string) string {
	_, name, _ := strings.Cut(owner, atProcess)
	if strings.HasPrefix(owner, OperatorPrefix) {
		return ""
	}
	return validProcess(name)
}

// validProcess returns a process's name, or "" for any other text.
func validProcess(name string) string {
	host, id, _ := strings.Cut(name, ".")
	if host == "" || len(host) > mostHost || len(id) != processID || strings.ContainsFunc(host+id, func(r rune) bool { return !isPlain(r) }) {
		return ""
	}
	return name
}

// LastRun returns the process that ran the event last, and the fence of that run, which is about the time of its start in milliseconds
// since 1970. The fences of one process's runs are in the order of their starts, except for runs that started in the same millisecond.
//
// A process is named by its host's name and 40 random bits, or in a Lambda function by the end of its log stream's name. The name is
// empty and the fence 0 if they are not known: the record is of an earlier version or another program, or an operator has reopened it.
func (r Record) LastRun() (process string, fence int64) {
	switch {
	case r.Owner == "", strings.HasPrefix(r.Owner, OperatorPrefix):
		return "", 0
	case !r.Completed && r.Until.IsZero():
		if process, fence, crashed := crashedRun(r.LastError); crashed {
			return process, fence
		}
	}
	return processOf(r.Owner), r.Fence
}
