package console

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/internal/ops"
)

// mostListed is how many records the page of a record lists before a key is typed.
const mostListed = 20

// seenRecords are those of the newest looks, which were read already.
func (s *Server) seenRecords() (list []ops.Record) {
	for _, q := range s.opts.Queues {
		k := s.looks.of(q).Look
		if k == nil {
			continue
		}
		for _, m := range k.Messages {
			if r := m.RecordShown(); r != nil && len(list) < mostListed {
				list = append(list, *r)
			}
		}
	}
	return list
}

// diedProcess is a process that died, and how to free the neighbours of the event that killed it.
type diedProcess struct {
	ops.ShownProcess
	Free string // a command; "": there are none, or the name of the process, or the event that killed it, may not be known
}

// diedProcesses are those of a look, with a command where the look is whole.
func diedProcesses(of []ops.ShownProcess, whole bool, command func(args ...string) string) (died []diedProcess) {
	for _, p := range of {
		d := diedProcess{ShownProcess: p}
		if whole && p.Name != "" && p.Suspects > 0 && p.Crashed > 1 {
			args := []string{"record", "free", "--process", p.Name}
			if p.Suspects == 1 {
				args = append(args, "--except", p.Suspect)
			}
			d.Free = command(append(args, "--done", "happened")...)
		}
		died = append(died, d)
	}
	return died
}

// listRecords asks the store, which may read all of it: a person presses a button for it. Where its time is over it has the records
// so far, and words has why.
func (s *Server) listRecords(ctx context.Context) (list []ops.Record, words string, err error) {
	var out, notes bytes.Buffer
	code := s.opts.Command(ctx, &out, &notes, "record", "ls", "--limit="+strconv.Itoa(mostListed), "--json")
	words = strings.TrimSpace(notes.String())
	var listed struct {
		Records []ops.Record `json:"records"`
	}
	err = json.Unmarshal(out.Bytes(), &listed)
	if inTime := ctx.Err() == nil; code != exitDone && code != exitPart && (inTime || len(listed.Records) == 0) {
		err = refusal(code, words)
	}
	return listed.Records, words, err
}
