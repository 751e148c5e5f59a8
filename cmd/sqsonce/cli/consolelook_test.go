package cli

import (
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
	"github.com/sqsonce/sqsonce/localstack/fault"
)

// Each message is received once when Look is pressed, and by nothing else that is only read.
func TestConsoleReceivesOnLook(t *testing.T) {
	bubble(t, func(w *world) {
		ids := w.fill()
		b := w.browse(true)
		state := func() (receives []int) {
			for _, m := range w.stack.MemSQS().Messages("orders-dlq") {
				receives = append(receives, m.ReceiveCount)
				if m.InFlight {
					t.Errorf("message %s is hidden", m.ID)
				}
			}
			return receives
		}
		class := "/dlq/orders/class/8244c5?state=released"
		gets := func(want int) {
			t.Helper()
			before, calls := state(), b.called()
			for _, path := range []string{"/dlq/orders", class, "/dlq/orders/" + ids[dedup.StateReleased], "/fragment/look/orders", "/runs", "/fragment/runs", "/record"} {
				if got := b.get(path); got.code != http.StatusOK && got.code != want {
					t.Errorf("%s: %d: %s", path, got.code, got.text)
				}
			}
			if after := state(); fmt.Sprint(after) != fmt.Sprint(before) || !maps.Equal(calls, b.called()) {
				t.Errorf("GETs: received %v, was %v; calls %v, were %v", after, before, b.called(), calls)
			}
		}
		gets(http.StatusNotFound)
		if got := b.get("/dlq/orders"); !strings.Contains(got.text, "Nothing was received yet") {
			t.Errorf("before a look: %s", got.text)
		}
		before := state()
		page := b.look("orders")
		after := state()
		for i := range after {
			if after[i] != before[i]+1 {
				t.Errorf("received %v, was %v", after, before)
			}
		}
		for _, text := range []string{"8244c5 2 released", "card provider: status 503 for order *", "7 messages, all that SQS shows and counts", "each message was received once", "As of"} {
			if !strings.Contains(page.text, text) {
				t.Errorf("no %q in %s", text, page.text)
			}
		}
		gets(0)
		for path, key := range map[string]string{"/record": "#orders|completed completed", "/record?list=1": "#orders|crashed crashed"} { // of the look; of the store, which lists no completed ones
			if got := b.get(path); !strings.Contains(got.text, key) {
				t.Errorf("%s: no %s in %s", path, key, got.text)
			}
		}
		if got := b.get(class); !strings.Contains(got.text, "Messages 1 to 2 of 2") || !strings.Contains(got.text, ids[dedup.StateReleased]) {
			t.Errorf("%s", got.text)
		}
		got := b.get("/dlq/orders/" + ids[dedup.StateCrashed])
		for _, text := range []string{"crashed", ops.Means(dedup.StateCrashed), ops.Do(dedup.StateCrashed), "billing#orders|crashed", "owner-crashed", "event-id", "Body, 1 bytes"} {
			if !strings.Contains(got.text, text) {
				t.Errorf("no %q in %s", text, got.text)
			}
		}
	})
}

// Whatever a message, its record or an address holds stays text.
func TestConsoleHostile(t *testing.T) {
	const script = "<script>alert(1)</script>\u202e\x00\xff'\"><img src=x onerror=alert(2)>"
	legal := strings.ToValidUTF8(strings.ReplaceAll(script, "\x00", ""), "")
	bubble(t, func(w *world) {
		w.put("evil"+legal, ops.StateUnknown)
		big := w.send("orders-dlq", "big", strings.Repeat("<b>\u202e", 1<<20/8))
		id := w.send("orders-dlq", "evil"+legal, "\u202e"+legal, sqsonce.AttrRejectReason, "no "+legal, "x-own", legal)
		fifo := must.Get(w.stack.SQS.SendMessage(context.Background(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.stack.QueueURL["orders-dlq.fifo"]), MessageBody: aws.String("b"),
			MessageGroupId: aws.String("<script>g</script>"), MessageDeduplicationId: aws.String("<script>d</script>"),
		}))(w)
		b := w.browse(true)
		b.look("orders")
		b.look("orders.fifo")
		class := b.find(`/dlq/orders/class/[0-9a-f]{6}\?state=unknown`, b.get("/dlq/orders/"+id))
		key := "billing#orders|evil" + legal
		for _, got := range []answer{
			b.get("/dlq/orders"), b.get(class), b.get("/dlq/orders/" + id), b.get("/dlq/orders/" + big), b.get("/dlq/orders.fifo/" + *fifo.MessageId),
			b.get("/record?key=" + url.QueryEscape(key)), b.get("/record?key=" + url.QueryEscape(script)), b.get("/dlq/" + url.PathEscape(script)),
			b.get("/dlq/orders/" + url.PathEscape(script)), b.get("/dlq/orders/class/" + url.PathEscape(script)), b.get("/plan/" + url.PathEscape(script)),
			b.get("/runs/" + url.PathEscape(script)), b.post("/plan", "op", script), b.post("/plan", "op", "free", "key", script, "note", script),
			b.post("/plan", "op", "redrive", "queue", "orders", "class", script), b.post("/plan", "op", "redrive", "queue", script),
			b.plan("op", "redrive", "queue", "orders", "id", id), b.plan("op", "complete", "key", key, "create", "1"), b.post("/dlq/orders/look", "limit", script),
		} {
			for _, bad := range []string{"<script>", "<img", "\u202e", "\x00", "\xff"} {
				if strings.Contains(got.body, bad) {
					i := strings.Index(got.body, bad)
					t.Errorf("%s has %q: %q", got.path, bad, got.body[max(0, i-200):min(len(got.body), i+50)])
				}
			}
			if got.code >= 500 || got.body != "" && !strings.HasPrefix(got.contentTypes, "text/html; charset=utf-8") {
				t.Errorf("%.100q: %d, %s: %.300s", got.path, got.code, got.contentTypes, got.text)
			}
		}
		if got := b.get("/dlq/orders/" + id); !strings.Contains(got.body, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(got.body, `\u202e`) {
			t.Errorf("the body is not shown: %s", got.body)
		}
		if got := b.get("/dlq/orders/" + big); len(got.body) < 1<<20 {
			t.Errorf("%d bytes of a body of 1 MiB", len(got.body))
		}
	})
}

// Whoever sends messages decides how many classes there are: they are shown a hundred at a time too.
func TestConsoleManyClasses(t *testing.T) {
	bubble(t, func(w *world) {
		for i := range 130 {
			w.send("orders-dlq", "e"+strconv.Itoa(i), "b", sqsonce.AttrRejectReason, "reason "+strings.Repeat("x", i))
		}
		b := w.browse(true)
		if got := b.look("orders"); !strings.Contains(got.text, "1 to 100 of 130") || strings.Count(got.body, `<th scope="row">`) != 100 {
			t.Errorf("%s", got.text)
		}
		if got := b.get("/dlq/orders?page=2"); !strings.Contains(got.text, "101 to 130 of 130") || strings.Count(got.body, `<th scope="row">`) != 30 {
			t.Errorf("%s", got.text)
		}
		if got := b.get("/dlq/orders?page=3"); got.code != http.StatusBadRequest {
			t.Errorf("%d: %s", got.code, got.text)
		}
	})
}

// Of two looks at once each would hide messages from the other; what receives refuses the next one, and says since when.
func TestConsoleOneLook(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(30)
		w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Prob: 1, Do: fault.Delay, Delay: 8 * time.Second}}})
		b := w.browse(true)
		first := make(chan answer)
		go func() { first <- b.post("/dlq/orders/look", "limit", "1000") }()
		time.Sleep(time.Second)
		for _, got := range []answer{b.post("/dlq/orders/look", "limit", "1000"), b.post("/plan", "op", "redrive", "queue", "orders", "class", "bb9381", "state", "released")} {
			if got.code != http.StatusConflict || !strings.Contains(got.text, "a look at orders-dlq is under way since 00:00:0") {
				t.Errorf("%d: %s", got.code, got.text)
			}
		}
		if got := b.post("/dlq/orders.fifo/look", "limit", "1000"); got.code != http.StatusSeeOther {
			t.Errorf("another queue: %d: %s", got.code, got.text)
		}
		if got := <-first; got.code != http.StatusSeeOther { // it takes longer than a browser waits
			t.Errorf("%d: %s", got.code, got.text)
		}
		if got := b.get("/dlq/orders"); !strings.Contains(got.text, "Under way since") || strings.Contains(got.body, `action="/dlq/orders/look"><button`) {
			t.Errorf("%s", got.text)
		}
		time.Sleep(time.Minute)
		if got := b.get("/dlq/orders"); !strings.Contains(got.text, "30 messages, all that SQS shows and counts") {
			t.Errorf("%s", got.text)
		}
		if got := b.get("/fragment/look/orders"); !strings.Contains(got.text, "The look has ended") {
			t.Errorf("%s", got.text)
		}
	})
}

// A look that fails says so, and keeps what the last one showed.
func TestConsoleLookFails(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(30)
		b := w.browse(false)
		receives := func(nth int, code string) {
			w.stack.MemSQS().Set(fault.Plan{Rules: []fault.Rule{{Op: "ReceiveMessage", Nth: nth, Times: 99, Do: fault.Error, Code: code}}})
		}
		receives(1, "AccessDeniedException")
		if got := b.look("orders"); !strings.Contains(got.text, "failed or ended early") || !strings.Contains(got.text, "ReceiveMessage") || !strings.Contains(got.text, "Nothing was received yet") {
			t.Errorf("nothing before: %s", got.text)
		}
		receives(3, "InvalidAddress")
		if got := b.look("orders"); !strings.Contains(got.text, "failed or ended early") || !strings.Contains(got.text, "not all") {
			t.Errorf("in part: %s", got.text)
		}
		w.stack.MemSQS().Set(fault.Plan{})
		if got := b.look("orders"); strings.Contains(got.text, "failed") || !strings.Contains(got.text, "30 messages, all that SQS shows and counts") {
			t.Errorf("a good one: %s", got.text)
		}
		time.Sleep(time.Hour)
		receives(2, "InvalidAddress")
		if got := b.look("orders"); !strings.Contains(got.text, "The last look, of 01:0") || !strings.Contains(got.text, "30 messages, all that SQS shows and counts") || !strings.Contains(got.text, "2000-01-01 00:0") {
			t.Errorf("after a good one: %s", got.text)
		}
		if w.hidden("orders-dlq") != 0 {
			t.Errorf("%d are hidden", w.hidden("orders-dlq"))
		}
	})
}

// What came from other queues is counted, and not shown.
func TestConsoleSharedDLQ(t *testing.T) {
	bubble(t, func(w *world) {
		w.shareDLQ("returns")
		from := func(queue string) []string {
			return []string{sqsonce.AttrRejectReason, "declined", sqsonce.AttrDeadLetterSource, "arn:aws:sqs:us-east-1:000000000000:" + queue}
		}
		mine, other := w.send("orders-dlq", "mine", "b", from("orders")...), w.send("orders-dlq", "theirs", "b", from("returns")...)
		b := w.browse(true)
		page := b.look("orders")
		if !strings.Contains(page.text, "1 came from other queues, and are not shown") || strings.Contains(page.text, "theirs") {
			t.Errorf("%s", page.text)
		}
		if got := b.get("/dlq/orders/" + mine); got.code != http.StatusOK {
			t.Errorf("%d: %s", got.code, got.text)
		}
		if got := b.get("/dlq/orders/" + other); got.code != http.StatusNotFound || !strings.Contains(got.text, "look again") {
			t.Errorf("%d: %s", got.code, got.text)
		}
		if got := b.plan("op", "redrive", "queue", "orders", "id", other); !strings.Contains(got.text, "There is nothing to do") {
			t.Errorf("%s", got.text)
		}
	})
}

// Bad addresses and forms get an answer that names them.
func TestConsoleRefusals(t *testing.T) {
	bubble(t, func(w *world) {
		w.deadLetters(1)
		b := w.browse(true)
		for _, test := range []struct {
			got  answer
			code int
			says string
		}{
			{b.get("/dlq/nothing"), http.StatusNotFound, "does not show queue"},
			{b.get("/dlq/orders/class/bb9381"), http.StatusNotFound, "press Look first"},
			{b.get("/dlq/orders/1"), http.StatusNotFound, "press Look first"},
			{b.post("/dlq/nothing/look", "limit", "1000"), http.StatusNotFound, "does not show queue"},
			{b.post("/dlq/orders/look", "limit", "1001"), http.StatusBadRequest, "limit"},
			{b.post("/dlq/orders/look"), http.StatusBadRequest, "limit"},
			{b.post("/plan"), http.StatusBadRequest, "op is"},
			{b.post("/plan", "op", "purge"), http.StatusBadRequest, "op is"},
			{b.post("/plan", "op", "redrive"), http.StatusNotFound, "does not show queue"},
			{b.post("/plan", "op", "redrive", "queue", "orders"), http.StatusBadRequest, "class and id"},
			{b.post("/plan", "op", "redrive", "queue", "orders", "id", "1", "class", "2"), http.StatusBadRequest, "class and id"},
			{b.post("/plan", "op", "redrive", "queue", "orders", "class", "bb9381", "state", "dead"), http.StatusBadRequest, "dead"},
			{b.post("/plan", "op", "free"), http.StatusBadRequest, "key is empty"},
			{b.post("/plan", "op", "free", "key", "billing#orders|e0", "again", "1"), http.StatusOK, ""},
			{b.get("/plan/nothing"), http.StatusConflict, "list again"},
			{b.post("/act/nothing"), http.StatusConflict, "list again"},
			{b.get("/runs/nothing"), http.StatusNotFound, "audit.jsonl"},
			{b.post("/runs/nothing/stop"), http.StatusNotFound, "audit.jsonl"},
		} {
			if test.code == http.StatusOK { // a plan in which nothing is done
				test.code = http.StatusSeeOther
			}
			if test.got.code != test.code || !strings.Contains(test.got.text, test.says) {
				t.Errorf("%s: %d with %q, want %d with %q", test.got.path, test.got.code, test.got.text, test.code, test.says)
			}
		}
	})
}

// find returns the first match in a page, unescaped.
func (b *browser) find(pattern string, in answer) string {
	b.Helper()
	found := regexp.MustCompile(pattern).FindString(html.UnescapeString(in.body))
	if found == "" {
		b.Fatalf("%s: no %s in %s", in.path, pattern, in.body)
	}
	return found
}
