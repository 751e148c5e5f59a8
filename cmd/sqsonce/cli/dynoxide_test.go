package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack"
	"github.com/sqsonce/sqsonce/ops"
)

// The record commands on dynoxide, an implementation of DynamoDB that has no code in common with the one in memory.
func TestRecordOnDynoxide(t *testing.T) {
	clearEnvironment(t)
	line := testserver.NewLine(testserver.Dynoxide.Shared(t).URL)
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, line)
		keys := map[dedup.RecordState]string{}
		for _, state := range []dedup.RecordState{dedup.StateReleased, dedup.StateCompleted, dedup.StateForeign, dedup.StateCrashed, dedup.StateRunning} { // crashed takes time
			keys[state] = w.put(string(state), state)
		}
		w.shows(keys)
		w.lists(keys)
		w.changes(keys)
	})
}

// newWorldOn is newWorld with a DynamoDB at the other end of the line.
func newWorldOn(t *testing.T, line *testserver.Line) *world {
	w := newWorld(t, false)
	front := testserver.NewFront(line)
	t.Cleanup(front.Close)
	o := w.stack.DynamoDB.Options()
	o.HTTPClient = &http.Client{Transport: front}
	w.stack = &localstack.Stack{SQS: w.stack.SQS, DynamoDB: dynamodb.New(o)}
	w.must(dynamostore.CreateTable(context.Background(), w.stack.DynamoDB, "dedup"))
	var err error
	w.store, err = dynamostore.New(w.stack.DynamoDB, "dedup")
	w.must(err)
	w.env["SQSONCE_TABLE"] = "dedup"
	return w
}

// jsonOf runs a command with --json, which must succeed.
func (w *world) jsonOf(into any, args ...string) {
	w.Helper()
	got := w.run(append(args, "--json")...)
	if got.code != exitDone {
		w.Fatalf("%q: exit %d, %s", args, got.code, got.err)
	}
	w.must(json.Unmarshal([]byte(got.out), into))
}

// shows expects each record to be shown in its state, with what its last owner left.
func (w *world) shows(keys map[dedup.RecordState]string) {
	w.Helper()
	for state, key := range keys {
		var r recordJSON
		if w.jsonOf(&r, "record", "show", key); r.Key != key || r.State != state || (r.LastError != "") != (state == dedup.StateReleased) || (r.ResultBytes > 0) != (state == dedup.StateCompleted) {
			w.Errorf("show %s: %+v", key, r)
		}
	}
	if got := w.run("record", "show", consumer+"#orders|none"); got.code != exitDone || !strings.Contains(got.out, "none") {
		w.Errorf("show of no record: %+v", got)
	}
}

// lists expects the records that are not completed, also in pages.
func (w *world) lists(keys map[dedup.RecordState]string) {
	w.Helper()
	found, after := map[dedup.RecordState]string{}, ""
	for {
		var page struct{ Records []recordJSON }
		w.jsonOf(&page, "record", "ls", "--consumer", consumer, "--limit", "1", "--after", after)
		if len(page.Records) == 0 {
			break
		}
		after = page.Records[0].Key
		if found[page.Records[0].State] != "" {
			w.Fatalf("listed twice: %s", after)
		}
		found[page.Records[0].State] = after
	}
	for state, key := range keys {
		if listed := found[state] == key; listed == (state == dedup.StateCompleted) {
			w.Errorf("ls: %s is listed: %t", key, listed)
		}
	}
	var other struct{ Records []recordJSON }
	if w.jsonOf(&other, "record", "ls", "--consumer", "other"); len(other.Records) != 0 {
		w.Errorf("ls of another consumer: %+v", other.Records)
	}
}

// changes frees and completes what can be, and nothing else.
func (w *world) changes(keys map[dedup.RecordState]string) {
	w.Helper()
	ctx := context.Background()
	running, err := w.store.Inspect(ctx, keys[dedup.StateRunning])
	w.must(err)
	none := consumer + "#orders|none"
	for _, step := range []struct {
		command, key string
		code         exitCode
		after        dedup.RecordState
	}{
		{"free", keys[dedup.StateRunning], exitRefused, dedup.StateRunning},
		{"complete", keys[dedup.StateRunning], exitRefused, dedup.StateRunning},
		{"free", keys[dedup.StateCompleted], exitRefused, dedup.StateCompleted},
		{"free --take --again", keys[dedup.StateForeign], exitRefused, dedup.StateForeign},
		{"complete", none, exitRefused, ops.StateUnknown},
		{"free", none, exitRefused, ops.StateUnknown},
		{"free", keys[dedup.StateCrashed], exitDone, dedup.StateReleased},
		{"complete", keys[dedup.StateCrashed], exitDone, dedup.StateCompleted},
		{"complete", keys[dedup.StateReleased], exitDone, dedup.StateCompleted},
		{"complete --create", none, exitDone, dedup.StateCompleted},
		{"free --again", none, exitDone, dedup.StateReleased},
		{"free --take --note=looked", keys[dedup.StateRunning], exitDone, dedup.StateReleased},
	} {
		got := w.run(append(append([]string{"record"}, strings.Fields(step.command)...), step.key, "--yes")...)
		if after := w.state(step.key); got.code != step.code || after != step.after {
			w.Errorf("%s %s: exit %d and %s, want %d and %s: %s", step.command, step.key, got.code, after, step.code, step.after, got.err)
		}
	}
	// The consumer whose event was taken away has lost its lease; the next one runs the event, and sees the note.
	if err := w.store.Complete(ctx, running.Lease, dedup.Result{}); err == nil {
		w.Error("a consumer completes a record that was taken from it")
	}
	l, err := w.store.Acquire(ctx, dedup.Claim{Key: keys[dedup.StateRunning], Owner: "next", Lease: time.Minute, Retention: time.Hour, NoTakeover: true})
	if err != nil || l.LastError != "looked" {
		w.Errorf("the next consumer gets %+v, %v", l, err)
	}
}
