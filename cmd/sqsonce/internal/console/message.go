package console

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/classes"
	"github.com/sqsonce/sqsonce/dedup"
)

// messageData is the page of a message.
type messageData struct {
	dlqData
	Message *message
}

func (d messageData) PageTitle() string { return "Message " + d.Message.ID }

// Act is the form of acts on this message.
func (d messageData) Act() actForm {
	return actForm{Queue: d.Queue.Name, ID: d.Message.ID, State: d.Message.State, Records: d.Records}
}

// Back is the class of the message.
func (d messageData) Back() string {
	return classPath(d.Queue, classes.Class{ID: d.Message.Class.ID, State: d.Message.State})
}

// showMessage shows what the newest look has kept: nothing is received, and the record is as it was then.
func (s *Server) showMessage(_ context.Context, r *http.Request) (any, error) {
	d, err := s.dlq(r)
	if err != nil {
		return nil, err
	}
	if d.Look == nil {
		return nil, notListed(fmt.Errorf("nobody has looked into %s yet", d.Queue.DLQName))
	}
	m := d.Look.byID[r.PathValue("id")]
	if m == nil {
		return nil, notListed(fmt.Errorf("message %s is not among the %d that were read at %s", r.PathValue("id"), d.Look.Read, clock(d.Look.AsOf)))
	}
	return messageData{d, m}, nil
}

// attribute is one as a page shows it.
type attribute struct{ Name, Type, Value string }

// Shown returns the attributes. Binary ones are in base64.
func (m *message) Shown() (list []attribute) {
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		a := m.Attributes[name]
		value := a.String
		if a.Binary != nil {
			value = base64.StdEncoding.EncodeToString(a.Binary)
		}
		list = append(list, attribute{name, a.Type, value})
	}
	return list
}

// Problems says why the record is not known.
func (m *message) Problems() string {
	if m.Problem == nil {
		return ""
	}
	return m.Problem.Error()
}

// RecordShown returns the record as it was at the look, or nil.
func (m *message) RecordShown() *recordShown {
	if m.Record == nil {
		return nil
	}
	return &recordShown{*m.Record, m.State, m.ResultBytes}
}

// recordShown is a record as a page shows it: templates/fragments/record-pairs.html.
type recordShown struct {
	dedup.Record
	State       dedup.RecordState
	ResultBytes int
}
