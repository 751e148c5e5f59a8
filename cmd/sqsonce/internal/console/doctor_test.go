package console

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/doctor"
)

func TestDoctor(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Doctor = func(_ context.Context, q Queue) []doctor.Finding {
			if q.Name == "jobs.fifo" {
				return nil
			}
			return []doctor.Finding{
				{ID: "Q1", Verdict: doctor.OK, Text: "reachable"}, {ID: "T3", Verdict: doctor.Skip, Text: "denied"},
				{ID: "L2", Verdict: doctor.Fail, Text: "no <b>ReportBatchItemFailures", Fix: "aws lambda update " + q.Name}, {ID: "Q4", Verdict: doctor.Warn, Text: "4 d"},
			}
		}
	})
	f.has("/doctor", "started with <code>--function</code>", "Nothing was looked at yet", "Examine orders", "Examine jobs.fifo")
	w := f.post("/doctor", "queue=orders")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/doctor#doctor-0" {
		t.Errorf("got %d to %s", w.Code, w.Header().Get("Location"))
	}
	body := f.has("/doctor", "1 FAIL, 1 warn, 1 skip, 1 ok", "As of ", "no &lt;b&gt;ReportBatchItemFailures", "aws lambda update orders", "Nothing was looked at yet")
	if fail, warn, skip, ok := strings.Index(body, ">L2<"), strings.Index(body, ">Q4<"), strings.Index(body, ">T3<"), strings.Index(body, ">Q1<"); fail > warn || warn > skip || skip > ok {
		t.Error("what must be mended is not the first")
	}
	f.post("/doctor", "queue=jobs.fifo")
	f.has("/doctor", "0 FAIL, 0 warn, 0 skip, 0 ok", "No check applies")
	for form, want := range map[string]int{"queue=none": 404, "": 404, "queue=%zz": 400} {
		if w := f.post("/doctor", form); w.Code != want {
			t.Errorf("%q: got %d, want %d", form, w.Code, want)
		}
	}
}

// Two clicks make one examination; one that does not end is ended, and the page never waits for it for long.
func TestDoctorIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		f := newFixture(t, func(o *Options) {
			o.Doctor = func(ctx context.Context, _ Queue) []doctor.Finding {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return []doctor.Finding{{ID: "Q1", Verdict: doctor.Skip, Text: "could not look"}}
			}
		})
		begun := time.Now()
		first := make(chan int)
		go func() { first <- f.post("/doctor", "queue=orders").Code }()
		synctest.Wait()
		if w := f.post("/doctor", "queue=orders"); w.Code != http.StatusSeeOther || !time.Now().Equal(begun) {
			t.Errorf("the second click: got %d after %s", w.Code, time.Since(begun))
		}
		if code := <-first; code != http.StatusSeeOther || time.Since(begun) != doctorWait {
			t.Errorf("the first click: got %d after %s", code, time.Since(begun))
		}
		f.has("/doctor", "under way since")
		if other := f.has("/doctor"); !strings.Contains(other, "Examine jobs.fifo") {
			t.Error("the other queue cannot be examined")
		}
		time.Sleep(doctorTimeout)
		synctest.Wait()
		f.has("/doctor", "it was ended after 2m0s", "could not look", "Examine orders")
		if most.Load() != 1 {
			t.Errorf("%d examinations at once", most.Load())
		}
	})
}

// A panic is said, and what was found before stays.
func TestDoctorThatPanics(t *testing.T) {
	panics := false
	f := newFixture(t, func(o *Options) {
		o.Doctor = func(context.Context, Queue) []doctor.Finding {
			if panics {
				panic("of the doctor")
			}
			return []doctor.Finding{{ID: "Q1", Verdict: doctor.OK, Text: "reachable"}}
		}
	})
	f.post("/doctor", "queue=orders")
	panics = true
	if w := f.post("/doctor", "queue=orders"); w.Code != http.StatusSeeOther {
		t.Errorf("got %d", w.Code)
	}
	f.has("/doctor", "The last examination failed", "of the doctor", "reachable", "Examine orders")
	if !strings.Contains(f.logs.String(), "of the doctor") {
		t.Error("it is not logged")
	}
}

// The browser that has gone does not end it; the end of the console does.
func TestDoctorGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		f := newFixture(t, func(o *Options) {
			o.Doctor = func(ctx context.Context, _ Queue) []doctor.Finding { <-ctx.Done(); ended = true; return nil }
		})
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan struct{})
		go func() { f.do(f.request("POST", "/doctor", "queue=orders").WithContext(ctx)); close(answered) }()
		synctest.Wait()
		cancel()
		<-answered
		f.has("/doctor", "under way since")
		f.Close()
		if !ended {
			t.Error("the console has ended, and an examination goes on")
		}
	})
}
