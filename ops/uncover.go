package ops

import (
	"context"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
)

// mostLooks is how often what is left of a group is given back, and received again, without a message that is new.
const mostLooks = 3

// uncover gives back what is left of FIFO groups that go on, and reports whether it did: SQS shows no more of a group while messages
// of it are hidden. The groups are those of a receive, by message, in order. It is of use for those of which the receive had new
// messages, and for the last one, where the receive ended with its tenth message.
func (r *run) uncover(ctx context.Context, groups []string, batch []*Message) (gaveBack bool, err error) {
	if !r.d.fifo {
		return false, nil
	}
	again := map[string]bool{}
	for _, m := range batch {
		again[m.Group] = true
		r.looks[m.Group] = 0
	}
	if n := len(groups); n == host.MaxBatch && groups[0] != groups[n-1] && r.looks[groups[n-1]] < mostLooks {
		again[groups[n-1]] = true
		r.looks[groups[n-1]]++
	}
	var left []*heldMessage
	for group := range again {
		if !r.goesOn(group) {
			continue
		}
		for _, id := range r.left[group] {
			left = append(left, r.held.handles(id)...)
		}
	}
	if left = r.held.proven(left); len(left) == 0 {
		return false, nil
	}
	return true, r.held.giveBackThese(ctx, left)
}

// goesOn reports whether messages behind those that are left of a group may be sent.
func (r *run) goesOn(group string) bool {
	return r.o.SkipAhead || r.done == ActionRedriven && !r.o.DryRun && r.stopped[group] == nil
}

// groupsOf returns the group of each message.
func groupsOf(received []sqstypes.Message) (groups []string) {
	for _, m := range received {
		groups = append(groups, m.Attributes[string(sqstypes.MessageSystemAttributeNameMessageGroupId)])
	}
	return groups
}
