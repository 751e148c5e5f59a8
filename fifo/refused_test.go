package fifo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// A relay parks the event that SQS refuses. It must park none because of a permission, a queue or a key.
func TestRefusedIsTheEventOnly(t *testing.T) {
	t.Parallel()
	const entry, request = fault.FailEntries, fault.Error
	for _, tt := range []struct {
		do   fault.Kind
		code string
		want bool
	}{
		{entry, "InvalidMessageContents", true},
		{entry, "InvalidParameterValue", true},
		{entry, "AWS.SimpleQueueService.NonExistentQueue", false},
		{entry, "AccessDenied", false},
		{entry, "KmsDisabled", false},
		{entry, "KMS.NotFoundException", false},
		{entry, "InvalidSecurity", false},
		{entry, "ExpiredToken", false},
		{entry, "RequestThrottled", false},
		{entry, "KmsThrottled", false},
		{entry, "InternalError", false},
		{request, "InvalidMessageContents", true},
		{request, "BatchRequestTooLong", true},
		{request, "InvalidParameterValue", false}, // of the queue, perhaps
		{request, "MissingParameter", false},
		{request, "AccessDenied", false},
		{request, "QueueDoesNotExist", false},
		{request, "KmsDisabled", false},
		{request, "InvalidClientTokenId", false},
		{request, "InvalidSignatureException", false},
		{request, "ExpiredToken", false},
		{request, "ThrottlingException", false},
	} {
		t.Run(fmt.Sprint(tt.do, " ", tt.code), func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
				ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
				defer cancel()
				_, err := x.publisher().Publish(ctx, event("g", 1))
				if !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrRefused) != tt.want {
					x.Errorf("Publish: %v, want ErrNotSent; ErrRefused: %t, want %t", err, !tt.want, tt.want)
				}
			}, fault.Rule{Op: "SendMessageBatch", Prob: 1, Do: tt.do, Code: tt.code})
		})
	}
}

// A certificate, a missing answer and a panic say nothing of the event. So does a request of several entries that is refused for
// one of them, until it is divided.
func TestRefusedAfterADivision(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"InvalidMessageContents": "[1]", "InvalidParameterValue": "[]"} {
		t.Run(code, func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
				f := &refusing{next: x.srv, status: 400, code: code, bad: "poison", most: 10}
				p, err := fifo.NewPublisher(newClient(f), x.url, "orders")
				if err != nil {
					x.Fatal(err)
				}
				_, err = p.PublishAll(x.Context(), tenEvents(1))
				refused := []int{}
				for _, pe := range split(err) {
					if errors.Is(pe, fifo.ErrRefused) {
						refused = append(refused, pe.Index)
					}
				}
				if got := fmt.Sprint(refused); got != want || len(split(err)) != 1 {
					x.Errorf("refused: %s, want %s: %v", got, want, err)
				}
			})
		})
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
		t.Run(name, func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
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
		})
	}
}

// The first attempt may have put the event into the queue before its limit was lowered.
func TestTooLargeWhereAnAttemptIsOpen(t *testing.T) {
	bubble(t, standard, func(x *fixture) {
		x.url = x.create(orders, map[string]string{"MaximumMessageSize": "1024"})
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

// Events behind one that is refused are not refused.
func TestBehindARefusedEvent(t *testing.T) {
	bubble(t, orders, func(x *fixture) {
		_, err := x.publisher().PublishAll(x.Context(), []fifo.Event{event("g", 1), event("g", 2), event("h", 1)})
		got := make(map[string]bool)
		for _, pe := range split(err) {
			got[pe.EventID] = errors.Is(pe, fifo.ErrRefused)
		}
		if diff := cmp.Diff(map[string]bool{"g/v1": true, "g/v2": false, "h/v1": true}, got); diff != "" {
			x.Errorf("refused (-want +got):\n%s", diff)
		}
	}, fault.Rule{Op: "SendMessageBatch", Nth: 1, Do: fault.FailEntries, Code: "InvalidMessageContents"})
}

// Check refuses what Publish refuses, with the same error, and nothing else.
func TestEventCheck(t *testing.T) {
	t.Parallel()
	large := event("g", 1)
	large.Body = strings.Repeat("x", 1<<20)
	largest := fifo.Event{ID: "1", Group: "g", Body: strings.Repeat("x", 1<<20-len("event-id"+"String"+"1"+"event-source"+"String"+"orders"))}
	refused, unready := event("g", 1), event("g", 1)
	refused.Refused, unready.Refused = &sqsonce.OptionError{Package: "fifo_test", Field: "Event.Body"}, errCancelled
	attrs := event("g", 1)
	attrs.Attributes = map[string]sqsonce.Attribute{}
	for i := range 8 {
		attrs.Attributes[fmt.Sprint("a", i)] = sqsonce.Attribute{Type: "String", String: "x"}
	}
	for name, e := range map[string]fifo.Event{
		"good": event("g", 1), "nothing": {}, "no group": {ID: "1", Body: "x"}, "a blank in the group": {ID: "1", Group: "a b", Body: "x"},
		"no ID": {Group: "g", Body: "x"}, "no UTF-8": {ID: "1", Group: "g", Body: "\xff"}, "too large": large, "as large as may be": largest,
		"eight attributes": attrs, "refused": refused, "not ready": unready,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, orders, func(x *fixture) {
				_, want := x.publisher().Publish(x.Context(), e)
				got := e.Check("orders")
				if fmt.Sprint(got) != fmt.Sprint(want) {
					x.Errorf("Check: %v\nPublish: %v", got, want)
				}
				for _, reason := range []error{fifo.ErrNotSent, fifo.ErrRefused, errCancelled} {
					if errors.Is(got, reason) != errors.Is(want, reason) {
						x.Errorf("Check: %v: matches %q: %t, want %t", got, reason, errors.Is(got, reason), errors.Is(want, reason))
					}
				}
				if _, ok := errors.AsType[*fifo.PublishError](got); ok != (want != nil) {
					x.Errorf("Check: %T, want a PublishError: %t", got, want != nil)
				}
			})
		})
	}
	if fe, ok := errors.AsType[*sqsonce.OptionError](event("g", 1).Check("or ders")); !ok || fe.Field != "namespace" {
		t.Errorf("Check with a bad namespace: %v, want a OptionError of it", fe)
	}
}

func TestPublisherSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for queue, isFIFO := range map[string]bool{orders: true, standard: false} {
		inBubble(t, queue, func(x *fixture) {
			if p := x.publisher(); p.QueueURL() != x.url || p.Namespace() != "orders" || p.FIFO() != isFIFO {
				x.Errorf("queue %s, namespace %s, FIFO %t, want %s, orders, %t", p.QueueURL(), p.Namespace(), p.FIFO(), x.url, isFIFO)
			}
		})
	}
}

// A publisher that nobody has made says nothing of the event.
func TestRefusedByNoPublisher(t *testing.T) {
	t.Parallel()
	_, published := new(fifo.Publisher).Publish(t.Context(), event("g", 1))
	_, _, checked := new(fifo.Publisher).Check(event("g", 1))
	for _, err := range []error{published, checked} {
		if _, bad := errors.AsType[*sqsonce.OptionError](err); !bad || !errors.Is(err, fifo.ErrNotSent) || errors.Is(err, fifo.ErrRefused) {
			t.Errorf("%v: want ErrNotSent and a OptionError", err)
		}
	}
}
