package sqlstore

import (
	"strings"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/cut"
)

// resultColumns are the columns of a record's result: a complete writes all of them, and a new owner empties them.
var resultColumns = []struct {
	name, empty string
	arg         func(dedup.Result) any
	target      func(*dedup.Result) any
}{
	{"result", "NULL", func(r dedup.Result) any { return r.Data }, func(r *dedup.Result) any { return &r.Data }},
	{"validation", "''", func(r dedup.Result) any { return r.Validation }, func(r *dedup.Result) any { return &r.Validation }},
}

// The columns in a SELECT, and the assignments of a new owner.
var (
	resultNames  = eachResultColumn(func(name, _ string) string { return name })
	emptyResult  = eachResultColumn(func(name, empty string) string { return name + " = " + empty })
	assignResult = eachResultColumn(func(name, _ string) string { return name + " = ?" })
)

func eachResultColumn(text func(name, empty string) string) string {
	var all []string
	for _, c := range resultColumns {
		all = append(all, text(c.name, c.empty))
	}
	return strings.Join(all, ", ")
}

// complete completes the owner's record.
var complete = "UPDATE {records} SET " + assignResult + ", error = COALESCE(?, error), note = COALESCE(NULLIF(?, ''), note), status = 'COMPLETED' WHERE id = ? AND owner = ?"

// completeArgs are the arguments of complete.
func completeArgs(l dedup.Lease, res dedup.Result) []any {
	args := resultArgs(res)
	var skipped any // NULL: an earlier failure's text stays
	if res.Skipped != nil {
		skipped = cut.Cause(res.Skipped)
	}
	return append(args, skipped, cut.Text(res.Note, cut.MostCause), l.Key, l.Owner)
}

// resultArgs are the arguments of assignResult.
func resultArgs(res dedup.Result) (args []any) {
	for _, c := range resultColumns {
		args = append(args, c.arg(res))
	}
	return args
}

// resultTargets are the targets of a scan of resultNames.
func resultTargets(res *dedup.Result) (targets []any) {
	for _, c := range resultColumns {
		targets = append(targets, c.target(res))
	}
	return targets
}
