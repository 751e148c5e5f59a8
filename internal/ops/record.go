package ops

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// Record is what the commands and the console show of a record. Its fields are the only list of that: "shown" is the label in text
// and on pages, "as" what a number counts, or what true means.
type Record struct {
	Key          string            `json:"key"`
	State        dedup.RecordState `json:"state"`
	Do           string            `json:"do,omitempty"`
	LastError    string            `json:"last_error,omitempty" shown:"last error"`
	EarlierError string            `json:"earlier_error,omitempty" shown:"earlier error"` // before the event crashed or was done
	Note         string            `json:"note,omitempty" shown:"note"`                   // an operator's
	Owner        string            `json:"owner,omitempty" shown:"owner" look:"mono"`
	Process      string            `json:"process,omitempty" shown:"process" look:"mono"`
	Started      time.Time         `json:"started_at,omitzero" shown:"started"` // of the last run, about
	Fence        int64             `json:"fence,omitempty" shown:"fence" look:"mono"`
	ReceiveCount int               `json:"receive_count,omitempty" shown:"receive count"`
	Crashes      int               `json:"crashes,omitempty" shown:"crashes" as:"at least"`
	LeaseUntil   time.Time         `json:"lease_until,omitzero" shown:"lease until"`
	ExpiresAt    time.Time         `json:"expires_at,omitzero" shown:"expires"`
	Committed    bool              `json:"committed,omitempty" shown:"committed" as:"with the effect in one transaction: a second run makes it again"`
	ResultBytes  int               `json:"result_bytes,omitempty" shown:"result" as:"bytes"`
	dedup.Result                   // tags its fields in the same way
}

// NewRecord returns what is shown of a record, without the data of its result.
func NewRecord(r dedup.Record, s dedup.RecordState) Record {
	shown := Record{
		Key: r.Key, State: s, Do: Do(s), LastError: r.LastError, Note: r.Note, Owner: r.Owner, Fence: r.Fence, ReceiveCount: r.ReceiveCount, Crashes: r.Crashes(time.Now()),
		LeaseUntil: r.Until.UTC(), ExpiresAt: r.ExpiresAt.UTC(), Committed: r.Committed, Result: r.Result,
		ResultBytes: len(r.Result.Data),
	}
	shown.Data = nil
	var started int64
	shown.Process, started = r.LastRun()
	if at := time.UnixMilli(started).UTC(); started > 0 && at.Year() < 10_000 { // a counter's is in µs
		shown.Started = at
	}
	if s == dedup.StateCrashed || s == dedup.StateCompleted && !strings.Contains(r.LastError, sqsonce.Skip("").Error()) {
		shown.LastError, shown.EarlierError = "", EarlierError(r, s)
	}
	return shown
}

// EarlierError is a record's error of an attempt before its state: "" where it is the note of the crash itself.
func EarlierError(r dedup.Record, s dedup.RecordState) string {
	if s == dedup.StateCrashed && r.Until.IsZero() {
		return ""
	}
	return startedAt.ReplaceAllStringFunc(r.LastError, func(at string) string {
		text, ms := at[:len(at)-13], at[len(at)-13:]
		n, err := strconv.ParseInt(ms, 10, 64)
		if err != nil {
			return at
		}
		return text + time.UnixMilli(n).UTC().Format("2006-01-02 15:04:05.000") + " UTC"
	})
}

// startedAt is in the notes of a crash: a time in ms.
var startedAt = regexp.MustCompile(`\bcrashed\b.*?, started at \d{13}\b`)

// Field is one of a record's: a label, and a time or a text.
type Field struct {
	Label string
	Time  time.Time
	Text  string
	Mono  bool // the text is for machines
}

// Fields are those that have a label and a value.
func (r Record) Fields() (fields []Field) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Record]()) {
		v := reflect.ValueOf(r).FieldByIndex(field.Index)
		f := Field{Label: field.Tag.Get("shown"), Text: field.Tag.Get("as"), Mono: field.Tag.Get("look") == "mono"}
		if f.Label == "" || v.IsZero() {
			continue
		}
		switch value := v.Interface().(type) {
		case bool:
		case time.Time:
			f.Time = value
		default:
			f.Text = strings.TrimSpace(fmt.Sprint(value, " ", f.Text))
		}
		fields = append(fields, f)
	}
	return fields
}
