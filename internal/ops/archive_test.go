package ops_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	limits "github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/ops"
)

const (
	archiveHead = `{"sqsonce-archive":1,"made":"2026-11-23T14:02:10Z"}` + "\n"
	archiveLine = `{"queue":"arn:aws:sqs:us-east-1:000000000000:jobs-dlq.fifo","run":"R","at":"2026-11-23T14:02:11.5Z","id":"7f3c","state":"released",` +
		`"cause":"rejected","class":"a41f09","reason":"card 42 declined","key":"billing#orders|e1","expired":true,` +
		`"source":"arn:aws:sqs:us-east-1:000000000000:jobs.fifo","sent_at":"2026-11-22T10:00:00.001Z","first_received_at":"2026-11-22T10:00:01Z",` +
		`"receives":7,"group":"g","sequence":"18","dedup_id":"d","trace":"Root=1","attributes":{"a":{"type":"Number.int","value":"1"},` +
		`"b":{"type":"Binary.png","binary":"AP8="},"redriven":{"type":"String","value":"2 R0 5"}},"body":"<&>\u2028\"é\n"}` + "\n"
)

func readArchive(text string) (all []*ops.Message, err error) {
	for a, e := range ops.ReadArchive(strings.NewReader(text)) {
		if err = e; err == nil {
			all = append(all, a)
		}
	}
	return all, err
}

// Each field of a line is one of the message.
func TestReadArchive(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 11, 22, 10, 0, 0, 1_000_000, time.UTC)
	want := &ops.Message{
		Message: sqsonce.Message{
			ID: "7f3c", Body: "<&>\u2028\"é\n", Group: "g", Sequence: "18", DedupID: "d", TraceHeader: "Root=1", ReceiveCount: 7,
			SentAt: sent, FirstReceivedAt: sent.Truncate(time.Second).Add(time.Second), QueueARN: arnPrefix + "jobs.fifo",
			Attributes: map[string]sqsonce.Attribute{
				"a": {Type: "Number.int", String: "1"}, "b": {Type: "Binary.png", Binary: []byte{0, 0xff}}, "redriven": {Type: "String", String: "2 R0 5"},
			},
		},
		Cause: ops.CauseRejected, Reason: "card 42 declined", Class: ops.Class{ID: "a41f09", Text: "card * declined"},
		RecordKey: "billing#orders|e1", State: dedup.StateReleased, Expired: true, Redriven: 2,
	}
	all, err := readArchive(archiveHead + archiveLine + archiveHead + "\n" + archiveLine)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d messages, %v", len(all), err)
	}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Error(diff)
	}
	if !cmp.Equal(want, all[1]) {
		t.Error("an archive behind another one", all[1])
	}
}

// What is no line of an archive is an error with its number, and only a last line without its end is one that was not written.
func TestBadArchives(t *testing.T) {
	t.Parallel()
	change := func(old, new string) string {
		return archiveHead + archiveLine + strings.Replace(archiveLine, old, new, 1) + archiveLine
	}
	for name, tt := range map[string]struct {
		text string
		line int
		err  error
	}{
		"empty":              {"", 1, ops.ErrArchive},
		"text":               {"text", 1, ops.ErrArchive},
		"text line":          {"text\n", 1, ops.ErrArchive},
		"a journal":          {`{"sqsonce-redrive":1,"queue":"q","run":"R"}` + "\n", 1, ops.ErrArchive},
		"another version":    {strings.Replace(archiveHead, ":1", ":2", 1) + archiveLine, 1, ops.ErrArchive},
		"a version later":    {archiveHead + archiveLine + strings.Replace(archiveHead, ":1", ":2", 1), 3, ops.ErrArchive},
		"no header":          {archiveLine, 1, ops.ErrArchive},
		"half a line inside": {archiveHead + archiveLine + archiveLine[:100] + "\n" + archiveLine, 3, ops.ErrArchive},
		"unknown field":      {change(`"attributes"`, `"atributes"`), 3, ops.ErrArchive},
		"no attribute type":  {change(`"type":"Number.int"`, `"kind":"x"`), 3, ops.ErrArchive},
		"no base64":          {change(`AP8=`, `A`), 3, ops.ErrArchive},
		"two objects":        {change("}\n", "} {}\n"), 3, ops.ErrArchive},
		"no id":              {change(`"7f3c"`, `""`), 3, ops.ErrArchive},
		"no body":            {change(`"body":"`, `"body":"","reason":"`), 3, ops.ErrArchive},
		"no run":             {change(`"run":"R",`, ``), 3, ops.ErrArchive},
		"no queue":           {change(`:jobs-dlq.fifo"`, `"`), 3, ops.ErrArchive},
		"no state":           {change(`"released"`, `"x"`), 3, ops.ErrArchive},
		"no cause":           {change(`"rejected"`, `"x"`), 3, ops.ErrArchive},
		"too long":           {archiveHead + archiveLine + strings.Repeat(" ", 17<<20) + archiveLine, 3, nil},
	} {
		all, err := readArchive(tt.text)
		bad, ok := errors.AsType[*ops.ArchiveError](err)
		if !ok || bad.Line != tt.line || tt.err != nil && !errors.Is(err, tt.err) || len(all) != max(0, tt.line-2) {
			t.Errorf("%s: %d messages, %v", name, len(all), err)
		}
		path := filepath.Join(t.TempDir(), "archive")
		must.Do(t, os.WriteFile(path, []byte(tt.text), 0o600))
		_, err = ops.OpenArchive(path)
		if after, _ := os.ReadFile(path); tt.text != "" && (err == nil || string(after) != tt.text) {
			t.Errorf("%s: opened: %v, or changed", name, err)
		}
	}
	for _, torn := range []string{archiveHead[:20], archiveHead + archiveLine[:100], archiveHead + strings.TrimSuffix(archiveLine, "\n")} {
		if all, err := readArchive(torn); err != nil || len(all) != 0 {
			t.Errorf("%q: %d messages, %v", torn, len(all), err)
		}
	}
	for _, err := range ops.ReadArchive(io.MultiReader(strings.NewReader(archiveHead+archiveLine[:9]), iotest.ErrReader(errCard))) {
		if !errors.Is(err, errCard) {
			t.Error("an error of the reader:", err)
		}
	}
}

const mebibyte = 1 << 20

// legalText draws a text that SQS accepts, of any of its characters.
func legalText(rt *rapid.T, most int, what string) string {
	char := rapid.OneOf(
		rapid.SampledFrom([]rune("\t\n\r \"\\<&>\x7f\u0085\u2028\u2029\ud7ff\ue000\ufffd\U00010000\U0010ffff")),
		rapid.Rune().Filter(func(r rune) bool { return r >= 0x20 && (r < 0xd800 || r > 0xdfff) && r != 0xfffe && r != 0xffff }),
	)
	return rapid.StringOfN(char, 1, most, -1).Draw(rt, what)
}

func legalAttribute(rt *rapid.T) sqsonce.Attribute {
	a := sqsonce.Attribute{Type: rapid.SampledFrom([]string{"String", "Number", "Binary"}).Draw(rt, "type")}
	switch a.Type {
	case "Binary":
		a.Binary = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(rt, "binary")
	case "Number":
		a.String = rapid.StringMatching(`-?[0-9]{1,18}(\.[0-9]{1,18})?`).Draw(rt, "number")
	default:
		a.String = legalText(rt, 40, "value")
	}
	a.Type += rapid.SampledFrom([]string{"", ".int", ".a b.é\t\U0010ffff"}).Draw(rt, "label")
	return a
}

// letter is a message that lands in the dead-letter queue.
type letter struct {
	FIFO  bool
	Cause ops.Cause
	In    sqsonce.Message
}

func drawLetter(rt *rapid.T) letter {
	l := letter{FIFO: rapid.Bool().Draw(rt, "fifo"), Cause: rapid.SampledFrom([]ops.Cause{ops.CauseRejected, ops.CauseReceivesUsedUp, ops.CauseSent}).Draw(rt, "cause")}
	m := &l.In
	m.Attributes = rapid.MapOfN(rapid.StringMatching(`[A-Za-z0-9_-]{1,30}`), rapid.Custom(legalAttribute), 0, 10).Draw(rt, "attributes")
	identity := rapid.SampledFrom([][]string{nil, {sqsonce.AttrEventID}, {sqsonce.AttrEventID, sqsonce.AttrEventSource}, {sqsonce.AttrEventKey}}).Draw(rt, "identity")
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if len(m.Attributes)+len(identity) > limits.MaxAttributes {
			delete(m.Attributes, name)
		}
	}
	for _, name := range identity {
		m.Attributes[name] = sqsonce.Attribute{Type: "String", String: legalText(rt, 20, name)}
	}
	m.Body = legalText(rt, 50, "body")
	if rapid.IntRange(0, 14).Draw(rt, "long") == 0 {
		room := mebibyte - limits.MessageBytes(m.Body, m.Attributes) - rapid.SampledFrom([]int{0, 40, 100, 200, 400}).Draw(rt, "room")
		m.Body += strings.Repeat(rapid.SampledFrom([]string{"x", "<", "\"", "\t"}).Draw(rt, "padding"), room)
	}
	if l.FIFO || rapid.Bool().Draw(rt, "tenant") {
		m.Group = rapid.StringMatching(`[!-~]{1,128}`).Draw(rt, "group")
	}
	if rapid.Bool().Draw(rt, "traced") {
		m.TraceHeader = "Root=1-5759e988-bd862e3fe1be46a994272793"
	}
	return l
}

// TestRoundTripProperties: a message that went through an archive and a redrive reaches its consumer as it was, with the same key. One
// without room for what keeps that is left where it is.
func TestRoundTripProperties(t *testing.T) {
	t.Parallel()
	const most = 50 // of the package's draws: each takes as long as several redrives
	draws, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		l := drawLetter(rt)
		if draws++; draws > most && !failed { // a failure is drawn again
			return
		}
		var problem string
		bubble(t, setup{fifo: l.FIFO, maxReceives: 1}, func(x *fixture) { problem = x.postAndBack(l) })
		if problem != "" || t.Failed() {
			failed = true
			rt.Fatalf("%s, %s: %s", x1(l), l.Cause, problem)
		}
	})
}

func x1(l letter) string { return fmt.Sprintf("%d attributes, %.60q", len(l.In.Attributes), l.In.Body) }

// post sends a letter to a queue.
func (x *fixture) post(url string, m sqsonce.Message) {
	x.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &m.Body, MessageAttributes: attributes(m.Attributes)}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if m.TraceHeader != "" {
		in.MessageSystemAttributes = traceHeader(m.TraceHeader)
	}
	if x.fifo {
		in.MessageDeduplicationId = aws.String("sent")
	}
	must.Get(x.admin.sqs.SendMessage(context.Background(), in))(x)
}

// postAndBack has a letter land in the dead-letter queue, archived, restored and redriven.
func (x *fixture) postAndBack(l letter) (problem string) {
	switch l.Cause {
	case ops.CauseSent:
		x.post(x.dlq, l.In)
	case ops.CauseReceivesUsedUp:
		x.post(x.url, l.In)
		x.receive(x.url)
		time.Sleep(time.Minute)
		x.receive(x.url)
	case ops.CauseRejected:
		x.post(x.url, l.In)
		x.worker(x.url, x.guarded(fails(sqsonce.Reject(errCard)))).stopAfter(time.Minute)
	}
	d := x.redriver()
	before := x.one(d)
	r := x.restore(d, x.drained(d))
	if full := r.Results[0].Err; full != nil {
		return x.wantFull(before, full)
	}
	after := x.one(d)
	want, got := shownOf(before), shownOf(after)
	if _, lost := after.Attributes[sqsonce.AttrDeadLetterSource]; !lost { // it had no room
		want.Cause, want.Reason, want.Class = got.Cause, got.Reason, got.Class
	}
	if diff := cmp.Diff(want, got); diff != "" || before.Body != after.Body || before.RecordKey == "" {
		return "listed before and after:\n" + diff
	}
	redriven, err := d.Redrive(context.Background(), noCanary)
	if full := redriven.Results[0].Err; full != nil || err != nil {
		return x.wantFull(after, errors.Join(full, err))
	}
	var mu sync.Mutex
	var handled *sqsonce.Message
	var key string
	once := x.once(x.admin)
	h := x.worker(x.url, x.guarded(func(_ context.Context, m *sqsonce.Message) (err error) {
		mu.Lock()
		defer mu.Unlock()
		handled = m
		key, err = once.Key(m)
		return err
	}))
	time.Sleep(time.Minute)
	h.stop()
	if handled == nil || key != before.RecordKey {
		return fmt.Sprintf("its consumer has %v, with the key %q; want %q", handled != nil, key, before.RecordKey)
	}
	sent := sqsonce.Message{Body: handled.Body, Group: handled.Group, TraceHeader: handled.TraceHeader, Attributes: maps.Clone(handled.Attributes)}
	delete(sent.Attributes, sqsonce.AttrRedriven)
	if _, own := l.In.Attributes[sqsonce.AttrEventKey]; !own {
		delete(sent.Attributes, sqsonce.AttrEventKey)
	}
	if l.In.Attributes == nil || len(sent.Attributes) == 0 {
		sent.Attributes = l.In.Attributes
	}
	return cmp.Diff(l.In, sent)
}

// wantFull: what is left for want of room has none, and has lost nothing.
func (x *fixture) wantFull(m *ops.Message, left error) string {
	key := len(sqsonce.AttrEventKey) + len("String") + len(m.RecordKey)
	if size := limits.MessageBytes(m.Body, m.Attributes); !errors.Is(left, ops.ErrNoRoom) || len(m.Attributes) < limits.MaxAttributes && size+key <= mebibyte {
		return fmt.Sprintf("%v, with %d attributes and %d bytes", left, len(m.Attributes), size)
	}
	return ""
}
