package cli

import (
	"errors"
	"strings"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/opserr"
	"github.com/sqsonce/sqsonce/internal/opsview"
	"github.com/sqsonce/sqsonce/ops"
)

// whys are the reasons why ops leaves a message, in this command's words.
var whys = []struct {
	err error
	why string
}{
	{opserr.ErrNotSelected, "not selected"},
	{opserr.ErrNoDestination, "nothing says which queue it came from: --source"},
	{opserr.ErrNoSource, "its key depends on the queue, and nothing says which one it came from: --source"},
	{opserr.ErrTooOften, "redriven too often before: --max-redriven"},
	{opserr.ErrArrivedLater, "came after the start"},
	{opserr.ErrCameBack, "redriven by this run, and came back"},
	{opserr.ErrOtherQueue, "archived from another queue: --other-queue"},
	{opserr.ErrHeldBehind, "behind a message of its group that was left: --skip-ahead"},
}

// why says why a message was left, in the same words for all messages of which that is so.
func why(res *ops.Result) string {
	for _, w := range whys {
		if errors.Is(res.Err, w.err) {
			return w.why
		}
	}
	switch {
	case res.Err == nil:
		return ""
	case !errors.Is(res.Err, ops.ErrState):
		return strings.ReplaceAll(res.Err.Error(), res.ID, "*")
	case res.State == dedup.StateCrashed:
		return string(res.State) + ": " + opsview.Do(res.State) + "; --crashed sends it all the same"
	case errors.Is(res.Err, opserr.ErrExpired):
		return "no record under its key, and so old that it may have expired: find out whether it was done; --expired sends it all the same"
	case errors.Is(res.Err, ops.ErrNoRecord):
		return "no record under its key: the consumer may use a key function or another store; --unknown sends it all the same"
	default:
		return string(res.State) + ": " + opsview.Do(res.State)
	}
}
