package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/ops"
)

// recordTimeout bounds the reads of a page: a store that is away shall not keep its reader waiting.
const recordTimeout = 15 * time.Second

func (s *Server) recordRoutes() { s.handlePage("GET /record", "record", "Record", s.showRecord) }

// recordData is the page of a record.
type recordData struct {
	Stored bool   // there is a store
	Key    string // "": only the form
	Record recordShown
	AsOf   time.Time
	Acts   []recordAct
}

// recordAct is what a command would do to the record.
type recordAct struct {
	Op, Flag string // "free", "take"
	Does     string // "": it would be refused, or there is nothing to do
	Not      string // why
}

// Name is the command.
func (a recordAct) Name() string {
	if a.Flag == "" {
		return "record " + a.Op
	}
	return "record " + a.Op + " --" + a.Flag
}

func recordPath(key string) string { return "/record?" + url.Values{"key": {key}}.Encode() }

// showRecord reads, by one consistent read, and by one more for each act: dry runs of the commands say what they would do.
func (s *Server) showRecord(ctx context.Context, r *http.Request) (any, error) {
	d := recordData{Stored: s.opts.Record != nil, Key: r.FormValue("key"), AsOf: time.Now()}
	if !d.Stored || d.Key == "" {
		return d, nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	record, state, err := s.opts.Record(ctx, d.Key)
	if errors.Is(err, dedup.ErrNotFound) {
		state, err = ops.StateUnknown, nil
	}
	if err != nil { // the command tells a wrong key from a store that is away
		code := s.opts.Command(ctx, io.Discard, io.Discard, "record", "show", "--", d.Key)
		return nil, refusal(code, err.Error())
	}
	d.Key = cmp.Or(record.Key, d.Key)
	size := len(record.Result.Data)
	record.Result.Data = nil
	d.Record = recordShown{record, state, size}
	for _, act := range actsOn(state) {
		d.Acts = append(d.Acts, s.wouldDo(ctx, act, d.Key))
	}
	return d, nil
}

// actsOn returns the commands that may be of use for a record in this state, the plain ones first.
func actsOn(state dedup.RecordState) []recordAct {
	acts := []recordAct{{Op: "free"}, {Op: "complete"}}
	switch state {
	case dedup.StateRunning:
		acts = slices.Insert(acts, 1, recordAct{Op: "free", Flag: "take"})
	case dedup.StateCompleted:
		acts = slices.Insert(acts, 1, recordAct{Op: "free", Flag: "again"})
	case ops.StateUnknown:
		acts = append(acts, recordAct{Op: "complete", Flag: "create"})
	}
	return acts
}

// wouldDo asks the command itself, which has the only rules.
func (s *Server) wouldDo(ctx context.Context, act recordAct, key string) recordAct {
	args := []string{"record", act.Op}
	if act.Flag != "" {
		args = append(args, "--"+act.Flag)
	}
	var out, notes bytes.Buffer
	code := s.opts.Command(ctx, &out, &notes, append(args, "--dry-run", "--json", "--", key)...)
	var p planJSON
	switch err := json.Unmarshal(out.Bytes(), &p); {
	case code != 0 || err != nil:
		act.Not = strings.TrimPrefix(said(notes.String()), act.Op+" "+key+": ")
	case p.Before == p.After:
		act.Not = "nothing to do: it is " + string(p.Before)
	default:
		act.Does = p.Effect
	}
	return act
}

// said is what a command has said on standard error, without its name.
func said(text string) string {
	return strings.TrimSpace(strings.ReplaceAll("\n"+text, "\nsqsonce: ", "\n"))
}
