package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/host"
)

const (
	archiveVersion = 1
	archiveHead    = `{"sqsonce-archive":`
)

// archive is a file to which [DLQ.Export] and [DLQ.Delete] write messages, whole, each in a line of JSON.
type archive struct{ *lineFile }

// openArchive creates the file, with mode 0600, or opens an archive to append to it. A last line that was not written to its end is
// removed: see [Report].Torn. Anything else that is no archive is an error, and not changed. A file is open once at a time.
func openArchive(path string) (*archive, error) {
	empty := true
	lines, err := openLines("archive", path, archiveHead, func(l line) error {
		empty = false
		_, err := decodeArchived(l)
		return err
	})
	if err != nil {
		return nil, err
	}
	if empty {
		if err := lines.write(archiveHeader{archiveVersion, time.Now().UTC().Truncate(time.Millisecond)}); err != nil {
			return nil, errors.Join(err, lines.file.Close())
		}
	}
	return &archive{lines}, nil
}

// close closes the file. Each line was on the disk before.
func (a *archive) close() error {
	if err := a.file.Close(); err != nil {
		return a.failed(err)
	}
	return nil
}

// archived is a message in an archive.
type archived struct {
	Message
	queue string // the ARN of the dead-letter queue
	run   string // the Export or Delete that wrote it: Report.Run
}

// ReadArchive returns the messages of an archive in the order of the file, as they were when they were archived. ID, SentAt, the
// receive count and State are of that time. The messages don't have a receipt handle, Record, LostAt and Problem. You can
// concatenate several archives and read them as one. A line that can't be read is an error with its number, and ends the
// sequence. ReadArchive skips a last line that was not written to its end, because its message was not deleted.
func ReadArchive(r io.Reader) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for a, err := range readArchive(r) {
			switch {
			case errors.Is(err, errTornLine):
				return
			case err != nil:
				yield(nil, err)
				return
			case !yield(&a.Message, nil):
				return
			}
		}
	}
}

// errTornLine is a last line without its end: the process was killed, or the disk was full, while it wrote a line that nothing
// depends on.
var errTornLine = errors.New("the last line was not written to its end: its message was not deleted for it")

// readArchive returns an *archiveError as the last thing, if any.
func readArchive(r io.Reader) iter.Seq2[*archived, error] {
	return func(yield func(*archived, error) bool) {
		empty := true
		for l, err := range linesOf(r) {
			empty = false
			var a *archived
			switch {
			case err != nil:
				err = &archiveError{line: l.number, err: err}
			case !l.torn:
				a, err = decodeArchived(l)
			case l.number > 1 || beginsOf(string(l.text), archiveHead):
				err = &archiveError{line: l.number, err: errTornLine}
			default:
				err = &archiveError{line: l.number, err: errArchive}
			}
			if a == nil && err == nil {
				continue // a header
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
		if empty {
			yield(nil, &archiveError{line: 1, err: errArchive})
		}
	}
}

type archiveHeader struct {
	Version int       `json:"sqsonce-archive"`
	Made    time.Time `json:"made,omitzero"`
}

// archivedLine is the form of a message in an archive. Times are in UTC, with milliseconds.
type archivedLine struct {
	Queue           string                       `json:"queue"`
	Run             string                       `json:"run"`
	At              time.Time                    `json:"at"`
	ID              string                       `json:"id"`
	State           dedup.RecordState            `json:"state"`
	Cause           Cause                        `json:"cause"`
	Class           string                       `json:"class"`
	Reason          string                       `json:"reason"`
	Key             string                       `json:"key,omitempty"`
	Expired         bool                         `json:"expired,omitempty"`
	Source          string                       `json:"source,omitempty"`
	SentAt          time.Time                    `json:"sent_at,omitzero"`
	FirstReceivedAt time.Time                    `json:"first_received_at,omitzero"`
	Receives        int                          `json:"receives"`
	Group           string                       `json:"group,omitempty"`
	Sequence        string                       `json:"sequence,omitempty"`
	DedupID         string                       `json:"dedup_id,omitempty"`
	Trace           string                       `json:"trace,omitempty"`
	Attributes      map[string]archivedAttribute `json:"attributes,omitempty"`
	Body            string                       `json:"body"`
}

type archivedAttribute struct {
	Type   string `json:"type"`
	Value  string `json:"value,omitempty"`
	Binary []byte `json:"binary,omitempty"` // in base64
}

// archivedLine returns the message's line, or errNotArchived where reading that would give another message.
func (m *Message) archivedLine(queueARN, run string, at time.Time) (*archivedLine, error) {
	l := &archivedLine{
		Queue: queueARN, Run: run, At: at.UTC().Truncate(time.Millisecond),
		ID: m.ID, State: m.State, Cause: m.Cause, Class: m.Class.ID, Reason: strings.ToValidUTF8(m.Reason, "?"), Key: m.RecordKey, Expired: m.Expired, Source: m.QueueARN,
		SentAt: m.SentAt.UTC(), FirstReceivedAt: m.FirstReceivedAt.UTC(), Receives: m.ReceiveCount,
		Group: m.Group, Sequence: m.Sequence, DedupID: m.DedupID, Trace: m.TraceHeader, Body: m.Body,
	}
	for name, a := range m.Attributes {
		if l.Attributes == nil {
			l.Attributes = map[string]archivedAttribute{}
		}
		l.Attributes[name] = archivedAttribute{a.Type, a.String, a.Binary}
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	if read, err := parseArchived(text); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotArchived, err)
	} else if !reflect.DeepEqual(read, l) {
		return nil, errNotArchived
	}
	return l, nil
}

// parseArchived reads a line that is no header. A field that it does not know may be a slip of somebody who edited the file: the
// message would come back without it.
func parseArchived(text []byte) (*archivedLine, error) {
	l := &archivedLine{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("more than one object")
	}
	_, err := host.ParseQueueARN(l.Queue)
	switch {
	case err != nil:
		return nil, fmt.Errorf("queue is %.256q, which is not a queue's ARN", l.Queue)
	case l.ID == "" || l.Body == "" || l.Run == "":
		return nil, errors.New("no id, body or run")
	case !slices.Contains(causes, l.Cause) || !slices.Contains(States(), l.State):
		return nil, fmt.Errorf("cause %.64q, state %.64q", string(l.Cause), string(l.State))
	}
	return l, nil
}

// decodeArchived returns nil for a header.
func decodeArchived(in line) (*archived, error) {
	if in.number == 1 || bytes.HasPrefix(in.text, []byte(archiveHead)) {
		var h archiveHeader
		if err := json.Unmarshal(in.text, &h); err != nil {
			return nil, &archiveError{line: in.number, err: fmt.Errorf("%w: %w", errArchive, err)}
		}
		if h.Version != archiveVersion {
			return nil, &archiveError{line: in.number, err: fmt.Errorf("%w: version %d", errArchive, h.Version)}
		}
		return nil, nil
	}
	l, err := parseArchived(in.text)
	if err != nil {
		return nil, &archiveError{line: in.number, err: fmt.Errorf("%w: %w", errArchive, err)}
	}
	a := &archived{queue: l.Queue, run: l.Run, Message: Message{
		Message: sqsonce.Message{
			ID: l.ID, Body: l.Body, Group: l.Group, Sequence: l.Sequence, DedupID: l.DedupID, TraceHeader: l.Trace,
			ReceiveCount: l.Receives, SentAt: l.SentAt, FirstReceivedAt: l.FirstReceivedAt, QueueARN: l.Source,
		},
		Cause: l.Cause, Reason: l.Reason, Class: Class{ID: l.Class, Text: classOf(l.Reason).Text},
		RecordKey: l.Key, State: l.State, Expired: l.Expired,
	}}
	for name, value := range l.Attributes {
		if a.Attributes == nil {
			a.Attributes = map[string]sqsonce.Attribute{}
		}
		a.Attributes[name] = sqsonce.Attribute{Type: value.Type, String: value.Value, Binary: value.Binary}
	}
	a.Redriven = historyOf(a.Attributes).times
	return a, nil
}
