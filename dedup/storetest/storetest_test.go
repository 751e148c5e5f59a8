package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/suite"
)

// errUnlisted is an answer that a store does not know.
var errUnlisted = errors.New("code 55000")

// errReadOnly is a store that answers reads.
var errReadOnly = sqsonce.Unavailable(errors.New("read-only"))

func harness(defect string) Harness {
	with := func(down error) func(*testing.T) dedup.Store {
		return func(*testing.T) dedup.Store {
			return &switchable{defect: defect, rows: make(map[string]*row), down: down}
		}
	}
	return Harness{
		New: with(nil), Away: with(sqsonce.Unavailable(errors.New("no answer"))), Misconfigured: with(sqsonce.ErrMisconfigured),
		Unlisted: with(sqsonce.Unavailable(errUnlisted)), ReadOnly: with(errReadOnly), Inbox: refusedInbox,
		NoRecord: map[string]func(context.Context, dedup.Store, string) error{
			"another text": func(_ context.Context, s dedup.Store, key string) error {
				s.(*switchable).rows[key] = &row{foreign: true}
				return nil
			},
		},
	}.withDefaults()
}

// defects are stores that break one rule, and a case that must fail on each. Other cases may fail too.
var defects = []suite.Defect{
	{"accepts an empty key", "key/empty refused"},
	{"accepts an empty owner", "owner/empty refused"},
	{"answers without a verdict", "acquire/fresh key"},
	{"returns a lost lease as an error", "zombie acquire/after release"},
	{"returns a verdict with an error", "owner/empty refused"},
	{"acquires for a cancelled caller", "acquire/cancelled before the call stores nothing"},
	{"returns the end of a shorter renewal", "renew/never back"},
	{"returns why an event was skipped", "complete/every field of a result is kept"},
	{"blocks a released key with NoTakeover", "acquire/no takeover, released is free"},
	{"checks before it locks", "acquire/one winner of 32"},
	{"completes for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"completes for anyone", "complete/stale owner refused"},
	{"completes once only", "complete/twice"},
	{"completes without a record", "complete/without a record refused"},
	{"cuts errors inside characters", "release/a long error is shortened"},
	{"cuts keys at 1,000 bytes", "key/independent"},
	{"deletes on release", "zombie acquire/after release"},
	{"does not know its own claim", "own retry/lost reply recognised"},
	{"does not move retention with a renewal", "renew/keeps a long lease past the retention"},
	{"does not report a takeover", "acquire/takeover after expiry"},
	{"does not report an own retry", "own retry/lost reply recognised"},
	{"does not say until when", "acquire/held until says when"},
	{"drops the attempt", "acquire/fresh key"},
	{"drops the error", "release/frees and keeps the error"},
	{"extends the lease for a repeated claim", "own retry/does not extend the lease"},
	{"folds keys to lower case", "key/independent"},
	{"forgets a completed record with its lease", "complete/stays after the lease's end"},
	{"forgets a hash without a result", "complete/a hash without a result is kept"},
	{"forgets the fence", "acquire/takeover after expiry"},
	{"frees a live lease when retention ends", "retention/never frees a live lease"},
	{"gives a repeated claim a new fence", "own retry/after a takeover keeps its fence"},
	{"hides a lost lease on release", "release/stale owner is told and touches nothing"},
	{"hides a missing record on release", "release/without a record"},
	{"hides a refused complete", "complete/stale owner refused"},
	{"hides another owner's complete on release", "release/after another owner's complete"},
	{"does not say whom it takes over from", "acquire/takeover after expiry"},
	{"does not name the owner that it takes over from", "acquire/takeover after expiry"},
	{"keeps 26 bytes of an owner", "owner/names its process"},
	{"ignores NoTakeover", "acquire/no takeover of a crashed holder"},
	{"keeps hashes of 64 bytes", "complete/result is replayed"},
	{"keeps results of 64 KB", "complete/result is replayed"},
	{"refuses a reason with a NUL", "release/texts of any bytes"},
	{"refuses an error with a NUL", "release/texts of any bytes"},
	{"keeps a lease for a caller that left", "acquire/given up leaves no crash"},
	{"keeps a released key", "release/frees and keeps the error"},
	{"keeps an earlier error", "release/nil keeps no error"},
	{"keeps an error of any length", "release/a long error is shortened"},
	{"lets a released owner in again", "zombie acquire/after release"},
	{"loses the error in a crash", "release/the error outlives a crash"},
	{"loses the result", "complete/result is replayed"},
	{"loses the validation", "complete/result is replayed"},
	{"moves a renewed end back for a repeated claim", "zombie acquire/after renew"},
	{"never takes over", "acquire/takeover after expiry"},
	{"promises more than it leases", "acquire/fresh key"},
	{"refuses a late complete", "complete/late, none took over"},
	{"refuses a late renewal", "renew/after expiry while none took over"},
	{"releases a completed record", "release/after complete keeps it"},
	{"releases for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"releases for anyone", "release/stale owner is told and touches nothing"},
	{"renews after complete", "renew/after complete refused"},
	{"renews after release", "renew/after release refused"},
	{"renews backwards", "renew/never back"},
	{"renews for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"renews for anyone", "renew/stale owner refused"},
	{"renews for ever", "renew/ends later too"},
	{"renews nothing", "renew/moves the end"},
	{"reopens a completed record for its owner", "zombie acquire/after complete"},
	{"reports its own complete as a lost lease on release", "release/after complete keeps it"},
	{"reports its own release as a lost lease", "release/twice"},
	{"reports every earlier owner as a takeover", "release/frees and keeps the error"},
	{"says in progress when completed", "complete/done"},
	{"says nothing of a server that is away, at Acquire", "unavailable/no server"},
	{"says nothing of a server that is away, at Complete", "unavailable/no server"},
	{"says nothing of a server that is away, at Release", "unavailable/no server"},
	{"says nothing of a server that is away, at Renew", "unavailable/no server"},
	{"takes a server that is away for misconfigured", "unavailable/no server"},
	{"takes a misconfigured server for one that is away", "unavailable/misconfigured"},
	{"takes an unknown answer for a record that is none", "unavailable/an answer that the store does not know"},
	{"takes an unknown answer for a misconfiguration", "unavailable/an answer that the store does not know"},
	{"takes an unknown answer for a refused value", "unavailable/an answer that the store does not know"},
	{"takes a refused write for a refused value", "unavailable/a store that only answers reads"},
	{"takes over what is no record", "unavailable/not for data that is no record"},
	{"takes what is no record for an outage", "unavailable/not for data that is no record"},
	{"tells an owner of what is no record", "unavailable/not for data that is no record"},
	{"inspects what is no record", "unavailable/not for data that is no record"},
	{"ends a list at what is no record", "unavailable/not for data that is no record"},
	{"takes a refused value for an outage", "key/empty refused"},
	{"takes a handler's refused write for an outage", "unavailable/not for a write of an inbox's handler"},
	{"completes an event whose write was refused", "unavailable/not for a write of an inbox's handler"},
	{"works for no event after a refused write", "unavailable/not for a write of an inbox's handler"},
	{"says nothing of an unknown answer", "unavailable/an answer that the store does not know"},
	{"shortens retention with a renewal", "retention/counted from the acquire, renewals do not shorten it"},
	{"steals live leases", "acquire/held"},
	{"takes its fence only from the clock", "fence/two owners in one millisecond"},
	{"waits for the deletion of an expired record", "retention/ends"},
	{"begins with After", "list/goes on after a key"},
	{"counts what it does not list", "list/limit"},
	{"creates a record that it reopens", "reopen/no record"},
	{"cuts notes inside characters", "reopen/the note"},
	{"does not move retention with a reopen", "reopen/retention"},
	{"does not say until when, at Reopen", "reopen/a live lease"},
	{"drops the note of a complete", "reopen/the note"},
	{"drops the note", "reopen/leaves a released record of the operator"},
	{"ends at once at a negative Limit", "list/limit"},
	{"has one owner for every reopen", "reopen/leaves a released record of the operator"},
	{"ignores After", "list/goes on after a key"},
	{"ignores Force", "reopen/a live lease"},
	{"ignores Limit", "list/limit"},
	{"ignores States", "list/by state"},
	{"keeps a note of any length", "reopen/the note"},
	{"keeps a NUL of a note", "reopen/the note"},
	{"keeps an earlier note for want of one", "reopen/the note"},
	{"keeps an earlier error at an empty reason", "reopen/shows why an event was skipped"},
	{"keeps the count of crashes at a reopen", "reopen/crashes end"},
	{"loses the note at an acquire", "reopen/the note"},
	{"stores the note as the last error", "reopen/the note"},
	{"leaves a reopened record leased", "reopen/a crash is released"},
	{"leaves the fence of a reopened record", "reopen/a completed event runs again"},
	{"leaves the owner of a reopened record", "reopen/earlier owners are refused"},
	{"leaves the result of a reopened record", "reopen/leaves a released record of the operator"},
	{"lists a record that is not there", "list/no record"},
	{"lists consumers whose names begin so", "list/special characters in the consumer's name"},
	{"lists for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"lists questions", "list/no record of a question"},
	{"lists nothing", "list/ends with its caller's loop"},
	{"lists one consumer only", "list/all consumers"},
	{"lists without the errors", "list/each record as Inspect returns it"},
	{"looks before it locks, at Reopen", "reopen/one of 16 operators"},
	{"reopens any fence", "reopen/another owner or fence"},
	{"reopens any owner's record", "reopen/another owner or fence"},
	{"reopens for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"reopens in any status", "reopen/completed meanwhile by its owner"},
	{"reopens live leases", "reopen/a live lease"},
	{"says nothing of a server that is away, at Inspect", "unavailable/no server"},
	{"says nothing of a server that is away, at List", "unavailable/no server"},
	{"says nothing of a server that is away, at Reopen", "unavailable/no server"},
	{"shortens retention with a reopen", "reopen/retention"},
	{"takes a consumer for a pattern", "list/special characters in the consumer's name"},
	{"takes any ReopenOptions.Name", "reopen/bad arguments are refused"},
	{"takes any ReopenOptions.Retention", "reopen/bad arguments are refused"},
	{"takes any seen.Key", "reopen/bad arguments are refused"},
	{"takes any seen.Owner", "reopen/bad arguments are refused"},
	{"creates a record that it has seen", "keep/no record"},
	{"has one owner for every text", "keep/a text where there is none"},
	{"keeps a text over what is no record", "unavailable/not for data that is no record"},
	{"keeps for a cancelled caller", "owner/cancelled before the call changes nothing"},
	{"keeps over a record in progress", "keep/in progress"},
	{"keeps over any fence", "keep/another record than the one that was seen"},
	{"keeps over any owner's record", "keep/another record than the one that was seen"},
	{"keeps over any record", "keep/another record than the one that was seen"},
	{"keeps texts of 2,000 bytes", "keep/bad arguments are refused"},
	{"keeps where a record is", "keep/another record than the one that was seen"},
	{"keeps with any d", "keep/bad arguments are refused"},
	{"keeps with any data", "keep/bad arguments are refused"},
	{"keeps with any operator", "keep/bad arguments are refused"},
	{"keeps with any seen.Key", "keep/bad arguments are refused"},
	{"leaves the fence of a kept text", "keep/in place of the record that was seen"},
	{"leaves the note of what it replaces", "keep/in place of the record that was seen"},
	{"looks before it locks, at Keep", "keep/one of 16 operators"},
	{"never shortens a kept text", "keep/in place of the record that was seen"},
	{"refuses a text whose time has passed", "keep/a text whose time has passed is replaced as it was seen"},
	{"returns what was seen", "keep/a text where there is none"},
	{"says nothing of a server that is away, at Keep", "unavailable/no server"},
	{"waits for the deletion of a kept text", "keep/a text whose time has passed is as none"},
}

func TestDefectsAreSeen(t *testing.T) {
	t.Parallel()
	suite.SeesDefects(t, defects, func(defect string) (all []suite.Case) {
		for _, c := range cases() {
			all = append(all, harness(defect).suiteCase(c))
		}
		return all
	})
}

func TestRunOnACorrectStore(t *testing.T) {
	t.Parallel()
	Run(t, harness(""))
}
