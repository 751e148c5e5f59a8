package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// What a response proves decides whether there is another attempt, and which error the caller gets. A relay parks the event that SQS
// refuses: it must park none because of a permission, a queue or a key.
func TestRefusedIsTheEventOnly(t *testing.T) {
	t.Parallel()
	const entry, request = fault.FailEntries, fault.Error
	for _, tt := range []struct {
		do    fault.Kind
		code  string
		want  string
		again bool // more than one attempt
	}{
		{entry, "InvalidMessageContents", "refused", false},
		{entry, "InvalidParameterValue", "refused", false},
		{entry, "AWS.SimpleQueueService.NonExistentQueue", "not sent", false},
		{entry, "AccessDenied", "not sent", false},
		{entry, "KmsDisabled", "not sent", false},
		{entry, "KMS.NotFoundException", "not sent", false},
		{entry, "InvalidSecurity", "not sent", false},
		{entry, "ExpiredToken", "not sent", false},
		{entry, "RequestThrottled", "not sent", true},
		{entry, "KmsThrottled", "not sent", true},
		{entry, "KMS.ThrottlingException", "not sent", true},
		{entry, "InternalError", "not sent", true},
		{entry, "", "not sent", true},
		{request, "InvalidMessageContents", "refused", false},
		{request, "BatchRequestTooLong", "refused", false},
		{request, "InvalidParameterValue", "not sent", false}, // of the queue, perhaps
		{request, "MissingParameter", "not sent", false},
		{request, "AccessDenied", "not sent", false},
		{request, "QueueDoesNotExist", "not sent", false},
		{request, "KmsDisabled", "not sent", false},
		{request, "InvalidClientTokenId", "not sent", false},
		{request, "InvalidSignatureException", "not sent", false},
		{request, "ExpiredToken", "not sent", true},
		{request, "ThrottlingException", "not sent", true},
		{request, "KmsThrottled", "not sent", true},
		{request, "", "unknown", true},
		{fault.Reset, "", "unknown", true},
		{fault.DropEntries, "", "unknown", true},
	} {
		runIn(t, fmt.Sprint(tt.do, " ", tt.code), orders, func(x *fixture) {
			ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
			defer cancel()
			_, err := x.publisher().Publish(ctx, event("g", 1))
			got := reason(err)
			if errors.Is(err, fifo.ErrRefused) {
				got = "refused"
			}
			if n := x.sent.attemptsOf("g/v1"); got != tt.want || (n > 1) != tt.again {
				x.Errorf("Publish: %v after %d attempts, want %s; again: %t", err, n, tt.want, tt.again)
			}
			if api, ok := errors.AsType[smithy.APIError](err); tt.code != "" && !tt.again && (!ok || api.ErrorCode() == "") {
				x.Errorf("Publish: %v, want SQS's code in the chain", err)
			}
		}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: tt.do, Code: tt.code})
	}
}

// An event that may be in the queue is not refused: the relay would park what its consumer has.
func TestNotRefusedWhereAnAttemptIsOpen(t *testing.T) {
	t.Parallel()
	lost := fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.LoseReply}
	for name, rules := range map[string][]fault.Rule{
		"an entry":  {lost, {Op: "SendMessageBatch", Nth: 2, Times: 1000, Do: fault.FailEntries, Code: "InvalidMessageContents"}},
		"a request": {lost, {Op: "SendMessageBatch", Nth: 2, Times: 1000, Do: fault.Error, Code: "InvalidMessageContents"}},
	} {
		runIn(t, name, orders, func(x *fixture) {
			p := x.publisher()
			for range 2 { // the second call has an attempt of the first
				_, err := p.Publish(x.Context(), event("g", 1))
				if !errors.Is(err, fifo.ErrUnknownOutcome) || errors.Is(err, fifo.ErrRefused) {
					x.Errorf("Publish: %v, want an unknown outcome and no refusal", err)
				}
			}
			time.Sleep(10 * time.Minute) // nobody knows of an attempt
			if _, err := p.Publish(x.Context(), event("g", 1)); !errors.Is(err, fifo.ErrNotSent) || !errors.Is(err, fifo.ErrRefused) {
				x.Errorf("Publish: %v, want a refusal", err)
			}
		}, rules...)
	}
}

// The first attempt may have put the event into the queue before its limit was lowered.
func TestTooLargeWhereAnAttemptIsOpen(t *testing.T) {
	bubble(t, standard, func(x *fixture) {
		x.url = testaws.Queue(x, x.sqs, orders, map[string]string{"MaximumMessageSize": "1024"})
		p := x.publisher()
		e := event("g", 1)
		e.Body = strings.Repeat("x", 2000)
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if _, err := p.Publish(ctx, e); !errors.Is(err, fifo.ErrUnknownOutcome) {
			x.Fatalf("Publish: %v, want an unknown outcome", err)
		}
		_, err := p.Publish(x.Context(), e) // the limit is known by now
		if _, bad := errors.AsType[*sqsonce.OptionError](err); !bad || errors.Is(err, fifo.ErrRefused) {
			x.Errorf("Publish: %v, want a OptionError and no refusal", err)
		}
		time.Sleep(20 * time.Minute)
		if _, err := p.Publish(x.Context(), e); !errors.Is(err, fifo.ErrRefused) {
			x.Errorf("Publish: %v, want a refusal", err)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.Delay, Delay: time.Minute})
}
