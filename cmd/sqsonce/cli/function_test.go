package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
)

var (
	pauseBilling  = []string{"pause", "--function", "billing", "--role", switchBack, "--until", "2h", "--reason", "bank is down", "--yes"}
	resumeBilling = []string{"resume", "--function", "billing", "--reason", "bank is back", "--yes"}
	statusBilling = []string{"status", "--function", "billing"}
)

// says runs a command and compares its exit code, and what it prints on both outputs.
func (w *world) says(args []string, code exitCode, want string) {
	w.Helper()
	if got := w.run(args...); got.code != code || !strings.Contains(got.out+got.err, want) {
		w.Errorf("%q: got %+v, want exit %d and %q", args, got, code, want)
	}
}

func (w *world) wantStates(when string, want ...string) {
	w.Helper()
	if got := w.lambda.states(); !slices.Equal(got, want) {
		w.Errorf("%s: mappings are %v, want %v", when, got, want)
	}
}

// A function is paused, shown and resumed, and what fires after the resume changes nothing.
func TestFunction(t *testing.T) {
	bubble(t, func(w *world) {
		f := w.functions("orders", "orders.fifo")
		f.mappings[1].ProvisionedPollerConfig = map[string]int{"MinimumPollers": 2}
		w.says(statusBilling, exitDone, "Enabled\topen\n")
		w.says(pauseBilling, exitDone, "paused until 2000-01-01 02:00")
		w.wantStates("after the pause", "Disabled", "Disabled")
		w.says(statusBilling, exitDone, "paused until 2000-01-01 02:00")
		time.Sleep(time.Hour)
		w.says(pauseBilling, exitDone, "paused until 2000-01-01 03:00") // it lasts longer
		time.Sleep(90 * time.Minute)
		w.wantStates("after the time of the first pause", "Disabled", "Disabled")
		w.says(resumeBilling, exitDone, "open, as "+callerARN+" asked for: bank is back")
		w.wantStates("after the resume", "Enabled", "Enabled")
		w.says(statusBilling, exitDone, "bank is back")
		w.says(resumeBilling, exitDone, "nothing to do")
		time.Sleep(24 * time.Hour)
		w.wantStates("a day later", "Enabled", "Enabled")
		w.says(pauseBilling, exitDone, "paused until") // again, where there is a schedule that has fired
		f.pass(2 * time.Hour)
		w.wantStates("after its time", "Enabled", "Enabled")
		w.says(statusBilling, exitDone, "Enabled\topen\n")
		if len(f.mappings[1].ProvisionedPollerConfig) != 1 || len(f.schedules) != 2 {
			t.Errorf("pollers %v, %d schedules, want what was, and one schedule of each mapping", f.mappings[1].ProvisionedPollerConfig, len(f.schedules))
		}
		var what []string
		for _, l := range w.audited() {
			if what = append(what, l.Event+" "+l.What); l.Function != "billing" || l.Event == "begin" && (l.Note == "" || l.Who.ARN != callerARN) {
				t.Errorf("audit: got %+v", l)
			}
			if l.Event == "end" && l.What == "pause" && !strings.Contains(fmt.Sprint(l.After), "paused until 2000-01-") {
				t.Errorf("audit: got %+v, want what holds after it", l)
			}
		}
		if len(what) != 8 || what[0] != "begin pause" || what[1] != "end pause" {
			t.Errorf("audit: got %q, want two lines of each of four changes", what)
		}
	})
}

var errKilled = errors.New("killed")

// callsOf is how many calls commands make, after a pause or without one.
func callsOf(t *testing.T, paused bool, queues []string, commands ...[]string) (n int) {
	t.Helper()
	run(t, "calls", func(w *world) {
		f := w.functions(queues...)
		if paused {
			w.says(pauseBilling, exitDone, "")
			f.calls = nil
		}
		for _, c := range commands {
			w.says(c, exitDone, "")
		}
		n = len(f.calls)
	})
	return n
}

// No kill leaves a mapping off for ever: whatever call is the last one, and whether or not it is carried out.
func TestFunctionKilled(t *testing.T) {
	queues := []string{"orders", "orders.fifo"}
	for _, paused := range []bool{false, true} {
		for last := range callsOf(t, paused, queues, pauseBilling, resumeBilling) {
			for _, carriedOut := range []bool{false, true} {
				run(t, fmt.Sprintf("call %d, carried out %t, after a pause %t", last+1, carriedOut, paused), func(w *world) {
					f := w.functions(queues...)
					if paused {
						w.says(pauseBilling, exitDone, "")
						time.Sleep(time.Hour)
						f.calls = nil
					}
					f.before = func(n int, _ string) error {
						if n > last+1 || n == last+1 && !carriedOut {
							return errKilled
						}
						return nil
					}
					f.after = func(n int, _ string) error {
						if n == last+1 {
							return errKilled
						}
						return nil
					}
					w.run(pauseBilling...)
					w.run(resumeBilling...)
					f.before, f.after = nil, nil
					f.pass(2*time.Hour + mappings.Least)
					w.wantStates("after the time of the pause", "Enabled", "Enabled")
					w.says(statusBilling, exitDone, "open")
				})
			}
		}
	}
}

// Two operators at once, at each step of one: whoever is first, nothing is off for ever, and nobody is told that his pause holds if it
// does not.
func TestFunctionTwoOperators(t *testing.T) {
	for _, first := range [][]string{pauseBilling, resumeBilling} {
		for _, other := range [][]string{pauseBilling, resumeBilling} {
			for _, paused := range []bool{false, true} {
				if !paused && first[0] == "resume" {
					continue // it does nothing
				}
				for step := range callsOf(t, paused, []string{"orders"}, first) {
					run(t, fmt.Sprintf("%s and %s at call %d, after a pause %t", first[0], other[0], step+1, paused), func(w *world) {
						f := w.functions("orders")
						if paused {
							w.says(pauseBilling, exitDone, "")
							f.calls = nil
						}
						var did result
						at := ""
						f.before = func(n int, call string) error {
							if n == step+1 {
								f.before, at = nil, call
								did = w.run(slices.Replace(slices.Clone(other), len(other)-2, len(other)-1, "other")...)
								time.Sleep(4 * time.Minute) // the request is on its way for so long
							}
							return nil
						}
						got := w.run(first...)
						f.before = nil
						_, then := w.lambda.states(), w.run(statusBilling...)
						const planned = 2 // calls that look
						if step >= planned && at != "UpdateSchedule" && got.code == exitDone && did.code == exitDone && !strings.Contains(did.err, "nothing to do") {
							t.Errorf("both have succeeded: %+v and %+v", got, did)
						}
						if then.code != exitDone && at != "UpdateSchedule" && at != "UpdateEventSourceMapping" {
							t.Errorf("at %s: %+v and %+v, and then %+v", at, got, did, then)
						}
						if first[0] == "pause" && got.code == exitDone && !strings.Contains(then.out, "bank is down") {
							t.Errorf("the pause has succeeded: %+v, and then %+v", got, then)
						}
						f.pass(2*time.Hour + mappings.Least)
						w.wantStates("after the time of the pause", "Enabled")
					})
				}
			}
		}
	}
}

// A computer that sleeps at any step switches nothing off when it wakes up after its schedules have fired.
func TestFunctionSuspended(t *testing.T) {
	for step := range callsOf(t, false, []string{"orders"}, pauseBilling) {
		for _, before := range []bool{false, true} {
			for _, sleeps := range []time.Duration{4 * time.Minute, 8 * time.Minute, 3 * time.Hour} {
				run(t, fmt.Sprintf("call %d, before %t, %s", step+1, before, sleeps), func(w *world) {
					f := w.functions("orders")
					sleep := func(n int, _ string) error {
						if n == step+1 {
							time.Sleep(sleeps)
						}
						return nil
					}
					if f.after = sleep; before {
						f.before, f.after = sleep, nil
					}
					w.run(slices.Replace(slices.Clone(pauseBilling), 6, 7, "10m")...)
					f.before, f.after = nil, nil
					f.pass(mappings.Least + time.Minute)
					w.wantStates("after the time of the pause", "Enabled")
				})
			}
		}
	}
}

// A pause lasts by AWS's clock.
func TestFunctionWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, -time.Hour, time.Hour, 24 * time.Hour} {
		run(t, ahead.String(), func(w *world) {
			w.functions("orders").ahead = ahead
			w.says(pauseBilling, exitDone, "paused until")
			time.Sleep(118 * time.Minute)
			w.wantStates("before its end", "Disabled")
			w.says(statusBilling, exitDone, "paused until")
			w.lambda.pass(3 * time.Minute)
			w.wantStates("after it", "Enabled")
		})
	}
}

// failing answers the calls of an operation with an error, n times.
func failing(call string, times int, err error) func(int, string) error {
	return func(_ int, c string) error {
		if c == call && times > 0 {
			times--
			return err
		}
		return nil
	}
}

func TestFunctionExitCodes(t *testing.T) {
	deny := func(call, message string) func(f *functionAPI) {
		return func(f *functionAPI) { f.before = failing(call, 9, refused{403, "AccessDeniedException", message}) }
	}
	without := func(flag string) []string {
		i := slices.Index(pauseBilling, flag)
		return slices.Delete(slices.Clone(pauseBilling), i, i+2)
	}
	with := func(args ...string) []string { return append(slices.Clone(pauseBilling), args...) }
	for name, test := range map[string]struct {
		args   []string
		change func(f *functionAPI)
		code   exitCode
		says   string
		off    bool
	}{
		"done":                      {off: true},
		"dry run":                   {args: with("--dry-run"), says: "would pause billing"},
		"no role":                   {args: without("--role"), code: exitUsage, says: "nothing would switch the mapping on again"},
		"no reason":                 {args: without("--reason"), code: exitUsage, says: "--reason"},
		"no end":                    {args: without("--until"), code: exitUsage, says: "--until"},
		"too short":                 {args: with("--until", "9m"), code: exitUsage, says: "10m"},
		"too long":                  {args: with("--until", "8d"), code: exitUsage, says: "7d"},
		"a long reason":             {args: with("--reason", strings.Repeat("r", 400)), code: exitUsage, says: mappings.ErrLong.Error()},
		"another function":          {args: with("--function", "ledger"), code: exitFailed, says: "no event source mapping"},
		"another queue":             {args: with("--queue", "other"), code: exitFailed, says: "from queue other"},
		"by its queue":              {args: with("--queue", ordersARN), off: true},
		"an empty function":         {args: []string{"pause", "--function", "", "--until", "2h", "--reason", "r", "--yes"}, code: exitUsage, says: "is a variable not set?"},
		"a role of workers":         {args: []string{"pause", "--consumer", "billing", "--role", switchBack, "--until", "2h", "--reason", "r", "--yes"}, code: exitUsage, says: "need --function"},
		"a consumer too":            {args: with("--consumer", "billing"), code: exitUsage, says: "consumer"},
		"longer than the retention": {args: with("--until", "5d"), code: exitRefused, says: "SQS deletes it at"},
		"lost by will":              {args: with("--until", "5d", "--yes-lose"), says: "BEFORE THE PAUSE ENDS", off: true},

		"off already":             {change: func(f *functionAPI) { f.mappings[0].State = "Disabled" }, code: exitRefused, says: "not by sqsonce", off: true},
		"a role that is no role":  {args: with("--role", "arn:aws:iam::000000000000:role/other"), code: exitRefused, says: "scheduler.amazonaws.com"},
		"a role that may not":     {change: func(f *functionAPI) { f.simulated = iamtypes.PolicyEvaluationDecisionTypeImplicitDeny }, code: exitRefused, says: `"Action":"lambda:UpdateEventSourceMapping","Resource":"arn:aws:lambda:` + account + `:event-source-mapping:1f0c`},
		"a role unknown":          {change: func(f *functionAPI) { f.simulated = "" }, code: exitFailed, says: "--yes-role"},
		"a role unknown, by will": {args: with("--yes-role"), change: func(f *functionAPI) { f.simulated = "" }, says: "it is not known", off: true},

		"Updating": {change: func(f *functionAPI) {
			f.mappings[0].State, f.mappings[0].to, f.mappings[0].until = "Updating", "Enabled", f.now().Add(time.Minute)
		}, off: true},
		"Enabling for ever": {change: func(f *functionAPI) { f.mappings[0].State = "Enabling" }, code: exitRefused, says: "is Enabling: look again"},
		"a conflict": {change: func(f *functionAPI) {
			f.before = failing("UpdateEventSourceMapping", 9, refused{409, "ResourceConflictException", "busy"})
		}, off: true},
		"in use": {change: func(f *functionAPI) {
			f.before = failing("UpdateEventSourceMapping", 9, refused{400, "ResourceInUseException", "busy"})
		}, off: true},
		"throttled": {change: func(f *functionAPI) {
			f.before = failing("UpdateEventSourceMapping", 9, refused{429, "TooManyRequestsException", "slow"})
		}, off: true},
		"no answer": {change: func(f *functionAPI) { f.after = failing("UpdateEventSourceMapping", 1, errKilled) }, off: true},
		"conflicts for ever": {change: func(f *functionAPI) {
			f.before = failing("UpdateEventSourceMapping", 999, refused{409, "ResourceConflictException", "busy"})
		}, code: exitFailed, says: "(0 of 1 are off)"},
		"another operator's schedule": {change: func(f *functionAPI) {
			f.before = failing("CreateSchedule", 1, refused{409, "ConflictException", "exists"})
		}, code: exitRefused, says: mappings.ErrChanged.Error()},
		"a schedule of somebody": {change: func(f *functionAPI) { f.schedules["sqsonce-"+f.mappings[0].UUID] = &fakeSchedule{Description: "mine"} }, code: exitRefused, says: mappings.ErrForeign.Error()},

		"list denied":   {change: deny("ListEventSourceMappings", "no"), code: exitDenied, says: `{"Effect":"Allow","Action":"lambda:ListEventSourceMappings","Resource":"*"}`},
		"get denied":    {change: deny("GetSchedule", "no"), code: exitDenied, says: `"Action":"scheduler:GetSchedule","Resource":"arn:aws:scheduler:` + account + `:schedule/default/sqsonce-1f0c`},
		"create denied": {change: deny("CreateSchedule", "no"), code: exitDenied, says: `"Action":"scheduler:CreateSchedule"`},
		"update denied": {change: deny("UpdateEventSourceMapping", "no"), code: exitDenied, says: "allow it: " + `{"Effect":"Allow","Action":"lambda:UpdateEventSourceMapping","Resource":"arn:aws:lambda:` + account},
		"the role denied": {change: deny("CreateSchedule", "User a is not authorized to perform: iam:PassRole on resource: b"), code: exitDenied,
			says: `"Action":"iam:PassRole","Resource":"` + switchBack + `","Condition":{"StringEquals":{"iam:PassedToService":"scheduler.amazonaws.com"}}}`},
	} {
		run(t, name, func(w *world) {
			f := w.functions("orders")
			if test.change != nil {
				test.change(f)
			}
			if test.args == nil {
				test.args = pauseBilling
			}
			w.says(test.args, test.code, test.says)
			f.before, f.after = nil, nil
			if off := f.states()[0] == "Disabled"; off != test.off {
				t.Errorf("the mapping is %v, want off: %t", f.states(), test.off)
			}
		})
	}
}

// What status and resume say where a mapping is not as it is asked to be.
func TestFunctionNotAsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w *world, f *functionAPI)
		shows  string
	}{
		"switched on by a deployment": {func(_ *world, f *functionAPI) { _ = f.update(f.mappings[0].UUID, true); time.Sleep(time.Minute) }, "not paused"},
		"a role that may not": {func(_ *world, f *functionAPI) {
			f.noRole = true
			time.Sleep(3 * time.Hour)
		}, "off after its time"},
		"its schedule is disabled": {func(_ *world, f *functionAPI) {
			f.schedules["sqsonce-"+f.mappings[0].UUID].State = "DISABLED"
			time.Sleep(3 * time.Hour)
		}, "nothing switches it on"},
	} {
		run(t, name, func(w *world) {
			f := w.functions("orders")
			w.says(pauseBilling, exitDone, "")
			test.change(w, f)
			w.says(statusBilling, exitFound, test.shows)
			w.says(resumeBilling, exitDone, "open, as")
			w.says(statusBilling, exitDone, "open, as")
			w.wantStates("after the resume", "Enabled")
		})
	}
}

// A plan is carried out while the mappings are as they were seen.
func TestFunctionPlan(t *testing.T) {
	bubble(t, func(w *world) {
		w.functions("orders")
		plan := w.dryRun(slices.DeleteFunc(slices.Clone(pauseBilling), func(a string) bool { return a == "--yes" }))
		w.says(pauseBilling, exitDone, "")
		w.says(append(slices.Clone(pauseBilling), "--plan", plan.Hash), exitRefused, "")
		w.says(resumeBilling, exitDone, "")
	})
}

func TestGoldenFunction(t *testing.T) {
	bubble(t, func(w *world) {
		w.functions("orders")
		w.golden("pause-function-dry-json", w.run(append(slices.Clone(pauseBilling), "--dry-run", "--json")...))
		w.golden("pause-function-pipe", w.run(pauseBilling...))
		w.golden("status-function-pipe", w.run(statusBilling...))
		w.golden("status-function-json", w.run(append(slices.Clone(statusBilling), "--json")...))
		w.golden("resume-function-json", w.run(append(slices.Clone(resumeBilling), "--json")...))
	})
}

// The doctor says who has paused a mapping, and until when.
func TestDoctorOfAPausedFunction(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *functionAPI)
		says   string
	}{
		"paused":         {func(*functionAPI) {}, "is paused until 2000-01-01 02:00:01 UTC by " + callerARN + ": bank is down"},
		"after its time": {func(f *functionAPI) { f.noRole = true; f.pass(3 * time.Hour) }, "is off after its time"},
		"by somebody":    {func(f *functionAPI) { clear(f.schedules) }, "is Disabled: nothing receives for billing"},
		"denied": {func(f *functionAPI) {
			f.before = failing("GetSchedule", 9, refused{403, "AccessDeniedException", "no"})
		}, "is Disabled: nothing receives for billing; not all was seen: scheduler:GetSchedule is denied"},
	} {
		run(t, name, func(w *world) {
			f := w.functions("orders")
			w.says(pauseBilling, exitDone, "")
			test.change(f)
			f.calls = nil
			if got := w.run("doctor", "--queue", "orders", "--function", "billing"); !strings.Contains(got.out, "L1\tmapping "+f.mappings[0].UUID+" "+test.says) {
				t.Errorf("got %+v, want L1 to say %q", got, test.says)
			}
			if slices.Contains(f.calls, "GetSchedule") {
				made.Lock()
				made.calls["read"]["scheduler:GetSchedule sqsonce-*"] = true
				made.Unlock()
			}
		})
	}
}

// A resume that reads a schedule, and is slow to bring it forward, shortens the pause of another operator meanwhile. Both commands go on
// from there.
func TestFunctionResumeOvertaken(t *testing.T) {
	for _, then := range []string{"pause", "resume"} {
		run(t, then, func(w *world) {
			f := w.functions("orders")
			w.says(pauseBilling, exitDone, "")
			f.before = func(_ int, call string) error {
				if call == "UpdateSchedule" {
					f.before = nil
					w.says(pauseBilling, exitDone, "paused until")
				}
				return nil
			}
			w.says(resumeBilling, exitPart, "off, until")
			w.wantStates("after both", "Disabled")
			w.says(statusBilling, exitFound, "off, until")
			if then == "resume" {
				w.says(resumeBilling, exitDone, "open, as")
				w.wantStates("after another resume", "Enabled")
				return
			}
			w.says(pauseBilling, exitDone, "paused until")
			f.pass(time.Hour)
			w.wantStates("an hour later", "Disabled")
			f.pass(time.Hour)
			w.wantStates("after the time of the pause", "Enabled")
		})
	}
}
