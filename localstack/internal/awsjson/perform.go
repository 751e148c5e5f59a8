package awsjson

import (
	"bytes"
	"net/http"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

func (s *Server) perform(op string, perform Operation, body []byte) answer {
	rule := s.Next(op)
	cost := Cost{}
	defer func() { s.Record(fault.Call{Op: op, Entries: cost.Entries, Units: cost.Units, Fault: rule}) }()

	if rule != nil {
		switch {
		case rule.Do == fault.Error && !rule.After:
			return s.encodeError(s.injected(rule))
		case rule.Do == fault.Reset && !rule.After:
			return answer{reset: true}
		case rule.Do == fault.Delay:
			s.sleep(rule.Delay)
		}
	}
	out, c, err := perform(s.ctx, body, rule)
	cost = c
	if rule != nil {
		switch rule.Do {
		case fault.Error:
			return s.encodeError(s.injected(rule))
		case fault.LoseReply, fault.Reset:
			return answer{reset: true}
		case fault.Replay:
			s.replay(op, perform, body, rule)
		}
	}
	if err != nil {
		return s.encodeError(err)
	}
	return s.encode(http.StatusOK, out, nil)
}

// replay performs the same bytes once more, as a copy of the packet that the network held back would.
func (s *Server) replay(op string, perform Operation, body []byte, rule *fault.Rule) {
	body = bytes.Clone(body) // the call that it came with has ended by then
	s.wg.Go(func() {
		if !s.sleep(rule.Delay) {
			return
		}
		_, c, _ := perform(s.ctx, body, nil) // nobody is left to answer
		s.Record(fault.Call{Op: op, Entries: c.Entries, Units: c.Units, Fault: rule})
	})
}

func (s *Server) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

func (s *Server) injected(r *fault.Rule) *Error {
	if s.svc.Injected != nil {
		if e := s.svc.Injected(r.Code); e != nil {
			return e
		}
	}
	e := &Error{Code: r.Code, Message: "injected fault"}
	if r.Code == "" || r.Code == s.svc.InternalCode {
		e.Code, e.Status = s.svc.InternalCode, http.StatusInternalServerError
	}
	return e
}
