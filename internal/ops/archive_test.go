package ops_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
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
		if ops.ArchiveLine(err) != tt.line || tt.err != nil && !errors.Is(err, tt.err) || len(all) != max(0, tt.line-2) {
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
