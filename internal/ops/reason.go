package ops

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
)

// explain sets the reason. The last error of a record is that of an earlier run where the event has crashed since, or is completed. An
// operator's note is no cause, and makes no class.
func (m *Message) explain() {
	class := "" // the reason, if it is not set
	switch {
	case m.Cause == CauseRejected && m.Attributes[sqsonce.AttrRejectReason].String != "":
		m.Reason = m.Attributes[sqsonce.AttrRejectReason].String
	case m.State == dedup.StateCrashed:
		m.Reason = crashReason(m.Crashes)
	case m.reopened():
		m.Reason, class = freedReason(m.Record.Note)
	case m.Record != nil && m.State != dedup.StateCompleted && m.Record.LastError != "":
		m.Reason = m.Record.LastError
	case m.noRecord(), m.State == StateNone:
		m.Reason, class = m.missing()
	case m.State == dedup.StateCompleted:
		m.Reason = Means(m.State)
	default:
		m.Reason = "no reason known"
	}
	m.Class = classOf(cmp.Or(class, m.Reason))
	if class == errDefaultKey.Error() {
		m.Class.Text = m.Reason
	}
	if m.Cause == CauseRejected && (m.State == dedup.StateCompleted || m.State == dedup.StateReleased) && strings.Contains(m.Reason, dedup.ErrCrashed.Error()) {
		m.Reason, _, _ = strings.Cut(m.Reason, crashAdvice)
		m.Class.Text, _, _ = strings.Cut(m.Class.Text, crashAdvice) // its ID stays, whoever selects by it
	}
}

// missing is the reason of a message without a record, and what its class is of. The ID of the class stays where the state becomes
// StateNone: whoever has seen the one selects the other by it.
func (m *Message) missing() (reason, class string) {
	class = errDefaultKey.Error()
	if reason = Means(m.State); m.Problem != nil {
		reason = m.Problem.Error()
	}
	if m.Expired {
		class = reason
	}
	if earlier := m.Attributes[sqsonce.AttrRejectReason].String; earlier != "" { // of an earlier visit: the attribute stays
		return earlier + ": " + reason, earlier
	}
	return reason, class
}

// crashAdvice begins the advice of a host that rejects an event after a crash. Somebody has followed it where the record was completed or
// freed since.
const crashAdvice = ": find out whether its effect happened"

func crashReason(crashes int) string {
	return crashedText + times(crashes) + " at least"
}

const (
	crashedText = "its process crashed "
	freedText   = "an operator freed it"
	afterCrash  = ", " + freedText // behind a crashReason
)

// FreeNote is the note of an operator who frees a record. After a crash it begins with that reason, so that the message's class stays.
func FreeNote(r dedup.Record, s dedup.RecordState, note string) string {
	if s != dedup.StateCrashed {
		return note
	}
	text := crashReason(r.Crashes(time.Now())) + afterCrash
	if note != "" {
		text += ": " + note
	}
	return text
}

// freedClass is the class of messages whose records were freed with this note.
func freedClass(note string) Class {
	_, class := freedReason(note)
	return classOf(class)
}

// freedReason returns the reason that a note of an operator makes, and what its class is of.
func freedReason(note string) (reason, class string) {
	crash, _, after := strings.Cut(note, afterCrash)
	switch {
	case after && strings.HasPrefix(crash, crashedText):
		return note, crash
	case note != "":
		return freedText + ": " + note, freedText
	}
	return freedText, freedText
}

// times is a number in words where it is one, so that a crash and a crash loop are two classes.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
