package lambda

import "github.com/sqsonce/sqsonce/internal/settle"

// A function can't hold a postponed message. It changes the visibility timeout, and the next delivery costs a receive.
// Where there is no next one, the message runs whatever limits say. Protocol, 18.8.

var _ settle.Holder = (*slot)(nil)

// Room implements [settle.Holder].
func (*slot) Room(string) (held, holds bool) { return false, false }

// InDebt implements [settle.Holder]: the message, or one behind it in its group, is at its last receive, or its
// retention ends.
func (s *slot) InDebt() bool {
	v := s.v
	if v.opts.Client == nil {
		return false
	}
	a := v.policy(s.chain[0])
	return a.maxReceives > 0 && v.anyReceived(s.chain, a.maxReceives) || a.expires(s.message.SentAt)
}
