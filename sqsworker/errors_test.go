package sqsworker

import (
	"errors"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code, text        string
		dead, fatal, slow bool
	}{
		{"ReceiptHandleIsInvalid", "", true, false, false},
		{"InvalidParameterValue", "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", true, false, false},
		{"InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", true, false, false},
		{"InvalidParameterValue", "something else", false, false, false},
		{"SignatureDoesNotMatch", "", false, false, false}, // at first: see signature
		{"ExpiredToken", "", false, false, false},
		{"AWS.SimpleQueueService.NonExistentQueue", "", false, false, false}, // at first: see absent
		{"RequestThrottled", "", false, false, true},
		{"KmsThrottled", "", false, false, true},
		{"InternalError", "", false, false, false},
	} {
		err := error(&entryError{code: tc.code, message: tc.text})
		if isHandleDead(err) != tc.dead || isFatal(err) != tc.fatal || isThrottle(err) != tc.slow {
			t.Errorf("%v: dead %t, fatal %t, throttle %t", err, isHandleDead(err), isFatal(err), isThrottle(err))
		}
	}
	for code, want := range map[string]bool{"AccessDenied": true, "AccessDeniedException": true, "InternalError": false, "": false} {
		if isAccessDenied(&entryError{code: code}) != want {
			t.Errorf("%q is access denied: %t, want %t", code, !want, want)
		}
	}
	if !isOutcomeUnknown(errors.New("connection reset")) {
		t.Error("a broken connection is an answer")
	}
}

func TestFatalErrorsEndRun(t *testing.T) {
	for _, code := range []string{"AccessDenied", "AccessDeniedException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "KmsDisabled"} {
		run(t, code, setup{faults: []fault.Rule{{Op: opReceive, Nth: 2, Times: 100, Do: fault.Error, Code: code}}}, func(x *fixture) {
			x.send("a")
			var r runs
			j := x.start(r.take(5 * time.Second))
			if err := j.wait(); !isFatal(err) && !isMissing(err) {
				x.Errorf("Run: got %v, want %s", err, code)
			}
			x.wantEmpty() // what is in flight is finished first
			if n := x.log.count("sqsworker: stopping"); n != 1 {
				x.Errorf("%d lines with the reason, want one", n)
			}
		})
	}
}

// TestDeniedCalls: a call that is not allowed ends Run with that answer, and no message is lost.
func TestDeniedCalls(t *testing.T) {
	for _, op := range []string{opReceive, opDelete, opChange} {
		run(t, op, setup{faults: []fault.Rule{{Op: op, Prob: 1, Do: fault.Error, Code: "AccessDenied"}}}, func(x *fixture) {
			x.send("a")
			var r runs
			j := x.start(r.take(20 * time.Second))
			if err := j.wait(); !isAccessDenied(err) {
				x.Errorf("Run: got %v, want AccessDenied", err)
			}
			if len(x.queued()) != 1 && op != opChange {
				x.Error("the message is lost")
			}
			j.wantHealth("after a fatal error", 503, 503)
		})
	}
}

// A worker that is stopped while SQS has not answered yet has left nothing undone.
func TestStoppedBeforeItEverReceived(t *testing.T) {
	for _, op := range []string{opReceive, "GetQueueAttributes"} {
		run(t, op, setup{faults: []fault.Rule{{Op: op, Prob: 1, Do: fault.Reset}}}, func(x *fixture) {
			j := x.start(ok)
			time.Sleep(20 * time.Second)
			j.stopClean()
		})
	}
}

// A 4xx is an answer, also with a code that the SDK does not know: a FIFO receive does not repeat its attempt after it.
func TestUnknownCodeIsAnAnswer(t *testing.T) {
	bubble(t, setup{fifo: true, faults: []fault.Rule{{Op: opReceive, Nth: 1, Times: 1, Do: fault.Error, Code: "SomethingNew"}}}, func(x *fixture) {
		x.send("g:a")
		j := x.start(ok)
		j.stopEmptyAfter(time.Minute)
		if s := j.Stats(); s.Unanswered != 0 {
			t.Errorf("%d receives unanswered, want none", s.Unanswered)
		}
	})
}
