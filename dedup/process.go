package dedup

import (
	"crypto/rand"
	"strings"

	"github.com/sqsonce/sqsonce/internal/host"
)

// An owner names its process, so that an operator sees which events were running where a process died: "RANDOM@HOST.ID".

const atProcess = "@" // in an owner, before the process

func newOwner() string { return rand.Text() + atProcess + host.Process() }

// processOf returns the process that an owner names; "": none, because an earlier version, another program or an operator made it.
func processOf(owner string) string {
	_, name, _ := strings.Cut(owner, atProcess)
	if strings.HasPrefix(owner, host.OperatorPrefix) {
		return ""
	}
	return host.ValidProcess(name)
}

// LastRun returns the process that ran the event last, and the fence of that run, which is about the time of its start in milliseconds
// since 1970. The fences of one process's runs are in the order of their starts, except for runs that started in the same millisecond.
//
// A process is named by its host's name and 40 random bits, or in a Lambda function by the end of its log stream's name. The name is
// empty and the fence 0 if they are not known: the record is of an earlier version or another program, or an operator has reopened it.
func (r Record) LastRun() (process string, fence int64) {
	switch {
	case r.Owner == "", strings.HasPrefix(r.Owner, host.OperatorPrefix):
		return "", 0
	case !r.Completed && r.Until.IsZero():
		if process, fence, crashed := crashedRun(r.LastError); crashed {
			return process, fence
		}
	}
	return processOf(r.Owner), r.Fence
}
