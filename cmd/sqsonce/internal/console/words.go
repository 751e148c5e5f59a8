package console

import (
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/ops"
)

// left is the time until then.
func left(t time.Time) string {
	if d := time.Until(t); d > 0 {
		return "in " + shown.Brief(d, true)
	}
	return "now"
}

// cause says how a message came into the dead-letter queue.
func cause(c ops.Cause) string {
	switch c {
	case ops.CauseRejected:
		return "its consumer rejected it"
	case ops.CauseReceivesUsedUp:
		return "SQS moved it after its last receive"
	default:
		return "somebody sent it here, and no queue is known that it came from"
	}
}

// mood is the class of a badge: it only repeats what the state's name says.
func mood(s dedup.RecordState) string {
	switch s {
	case dedup.StateCompleted:
		return "good"
	case dedup.StateCrashed, dedup.StateForeign, ops.StateUnknown:
		return "bad"
	case dedup.StateRunning:
		return "warn"
	default:
		return ""
	}
}

// verdictMood is the class of a badge: it only repeats what the verdict says.
func verdictMood(v doctor.Verdict) string {
	return map[doctor.Verdict]string{doctor.OK: "good", doctor.Warn: "warn", doctor.Fail: "bad"}[v]
}

const mostCut = 200 // bytes of a reason in a list

func cut(s string) string {
	if len(s) <= mostCut {
		return s
	}
	end := mostCut
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
