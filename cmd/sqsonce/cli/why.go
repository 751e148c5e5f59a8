package cli

import (
	"errors"
	"strings"

	"github.com/sqsonce/sqsonce/ops"
)

// whys are the reasons why ops leaves a message, in this command's words.
var whys = []struct {
	err error
	why string
}{
	{ops.ErrNotSelected, "not selected"},
	{ops.ErrNoDestination, "nothing says which queue it came from: --source"},
	{ops.ErrNoSource, "its key depends on the queue, and nothing says which one it came from: --source"},
	{ops.ErrTooOften, "redriven too often before: --max-redriven"},
	{ops.ErrArrivedLater, "came after the start"},
	{ops.ErrCameBack, "redriven by this run, and came back"},
	{ops.ErrOtherQueue, "archived from another queue: --other-queue"},
	{ops.ErrHeldBehind, "behind a message of its group that was left: --skip-ahead"},
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
	case res.State == ops.StateCrashed:
		return string(res.State) + ": " + res.State.Do() + "; --crashed sends it all the same"
	case errors.Is(res.Err, ops.ErrExpired):
		return "no record under its key, and so old that it may have expired: find out whether it was done; --expired sends it all the same"
	case errors.Is(res.Err, ops.ErrNoRecord):
		return "no record under its key: the consumer may use a key function or another store; --unknown sends it all the same"
	default:
		return string(res.State) + ": " + res.State.Do()
	}
}
