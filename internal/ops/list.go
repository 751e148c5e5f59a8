package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

const (
	defaultLimit = 1000
	mostBytes    = 1 << 30 // of bodies and attributes: all of them are in memory
	defaultHold  = time.Minute
	holdFor      = 10_000           // messages: a listing of more has defaultHold for each of these
	leastHold    = 10 * time.Second // a listing of a few messages takes three
	mostHold     = 12 * time.Hour   // the longest visibility timeout
	// listWait is the wait of a receive: a short poll asks only some of SQS's hosts, and may find nothing in a small queue.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html
	listWait = time.Second
	// receiveTimeout bounds a receive with the client's retries.
	receiveTimeout = 10 * time.Second
	// giveBackMargin is how long before the end of Hold the reading ends: a message that is given back too late may be another
	// consumer's.
	giveBackMargin = 5 * time.Second
	// emptyReceives in a row end a listing: one that finds nothing may have missed something.
	emptyReceives = 2
)

// holdOf returns the default for so many messages.
func holdOf(n int) time.Duration {
	n = min(n, int(mostHold/defaultHold)*holdFor)
	return defaultHold * time.Duration(max(1, (n+holdFor-1)/holdFor))
}

// Listing is the result of [DLQ.List].
type Listing struct {
	// Messages are in the order in which SQS returned them. On a FIFO queue this is the order of each group.
	Messages []*Message
	// AsOf is when the listing began.
	AsOf time.Time
	// Total is how many messages the queue had at AsOf, by SQS's approximate count. Hidden is how many of them were in flight:
	// with another listing, with a listing that was killed up to Options.Hold ago, or with a redrive. Hidden messages are not in
	// Messages.
	Total, Hidden int
	// Behind is how many messages of a FIFO queue List has not seen, because they are behind the messages that SQS shows of their
	// groups, or because of the limit.
	Behind int
	// Complete says that List has read all messages. SQS had no more to show, and its approximate count agrees.
	Complete bool
}

// List reads the messages of the queue, makes them visible again, and joins each with the record of its event, by one consistent
// read. It receives each message once, ten in a call, with eight calls at once on a standard queue. On FIFO it receives the messages
// of a group again that a receive cut off with its tenth message. It ends after two empty receives, at the limit (0: 1,000; negative:
// none), at 1 GiB of bodies and attributes, or before Options.Hold ends. All messages that it has read are visible again when it
// returns, also after an error, a panic of the client, or the end of ctx. In these cases it waits at most 10 s for receives that are
// under way, and returns the messages so far with the error. A record that can't be read is the Problem of its message.
func (d *DLQ) List(ctx context.Context, limit int) (Listing, error) {
	if limit = cmp.Or(limit, defaultLimit); limit < 0 {
		limit = math.MaxInt
	}
	if err := d.refuseChained("List"); err != nil {
		return Listing{}, err
	}
	visible, hidden, err := d.count(ctx)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{AsOf: time.Now(), Total: visible + hidden, Hidden: hidden}
	all, err := d.look(ctx, limit, cmp.Or(d.opts.Hold, holdOf(min(visible, limit))), &l)
	missing := max(0, visible-len(l.Messages))
	l.Complete = all && missing+hidden == 0
	if d.fifo {
		l.Behind = missing
	}
	d.join(ctx, l.Messages)
	return l, errors.Join(err, context.Cause(ctx))
}

// count returns SQS's approximate counts. Delayed messages count as hidden.
func (d *DLQ) count(ctx context.Context) (visible, hidden int, err error) {
	names := []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	attrs, err := d.attributes(ctx, d.url, names...)
	if err != nil {
		return 0, 0, err
	}
	var n [3]int
	for i, name := range names {
		if n[i], err = strconv.Atoi(attrs[string(name)]); err != nil {
			return 0, 0, d.failed("GetQueueAttributes", err)
		}
	}
	return n[0], n[1] + n[2], nil
}

// look receives messages into the listing, and gives them back. It reports whether SQS had no more to show.
func (d *DLQ) look(ctx context.Context, limit int, hold time.Duration, l *Listing) (all bool, err error) {
	h := newHeld(d, hold)
	defer func() { err = errors.Join(err, h.giveBack(ctx)) }()
	end := time.Now().Add(hold - giveBackMargin)
	size := 0
	for empty := 0; len(l.Messages) < limit && size < mostBytes && time.Now().Before(end); {
		if ctx.Err() != nil {
			return false, nil // List says why
		}
		left := l.Total - l.Hidden - len(l.Messages)
		received, found, err := d.receiveNew(ctx, h, limit-len(l.Messages), left)
		for _, in := range found {
			m := d.newMessage(in)
			l.Messages, size = append(l.Messages, m), size+host.MessageBytes(m.Body, m.Attributes)
		}
		if err != nil {
			return false, err
		}
		if empty++; len(found) > 0 {
			empty = 0
		}
		if cut := h.proven(h.handles(cutOff(received)...)); d.fifo && left > len(found) && len(cut) > 0 {
			if err := h.giveBackThese(ctx, cut); err != nil {
				return false, err
			}
			empty = 0
		}
		if empty == emptyReceives {
			return true, nil
		}
	}
	return false, nil
}

// receiveNew holds what it receives, most messages at most, and returns it, and what of it is new. Where a standard queue has as many
// messages left, by its count, it makes several receives at once. A receive on FIFO locks its groups, so there is one: the order is SQS's.
func (d *DLQ) receiveNew(ctx context.Context, h *held, most, left int) (all, found []sqstypes.Message, err error) {
	receives := max(1, min(callsAtOnce, min(most, left)/host.MaxBatch))
	if d.fifo {
		receives = 1
	}
	received, news, errs := make([][]sqstypes.Message, receives), make([][]sqstypes.Message, receives), make([]error, receives)
	host.InParallel(receives, receives, func(i int) {
		errs[i] = host.Contain(func() (err error) {
			sent := time.Now()
			received[i], err = d.receive(ctx, min(host.MaxBatch, most), h.hold)
			news[i] = h.add(received[i], sent)
			return err
		})
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		err = errs[i] // the others say the same
	}
	return slices.Concat(received...), slices.Concat(news...), err
}

// receive makes one receive, which the end of ctx does not cancel: SQS would go on with it, and hide messages that nobody
// has read. On a FIFO queue the client's retries get the same messages again, by the attempt's ID.
func (d *DLQ) receive(ctx context.Context, n int, hold time.Duration) ([]sqstypes.Message, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiveTimeout)
	defer cancel()
	in := &sqs.ReceiveMessageInput{
		QueueUrl:                    &d.url,
		MaxNumberOfMessages:         int32(n),
		WaitTimeSeconds:             int32(listWait / time.Second),
		VisibilityTimeout:           int32(hold / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	}
	if d.fifo {
		attempt := rand.Text()
		in.ReceiveRequestAttemptId = &attempt
	}
	out, err := d.client.ReceiveMessage(ctx, in, func(o *sqs.Options) { o.HTTPClient = sdkhttp.Whole(o.HTTPClient) })
	if err != nil {
		return nil, d.failed("ReceiveMessage", err)
	}
	return out.Messages, nil
}

// cutOff returns the messages of the last group of a receive that ended with its tenth message, behind other groups: SQS shows no more of
// the group while these are hidden. When they are visible again, a receive begins with the group, or has others before it, of which
// there is one fewer. The result is never nil, which is all messages for [held.handles].
func cutOff(received []sqstypes.Message) []string {
	groups := groupsOf(received)
	n := len(groups)
	ids := []string{}
	if n != host.MaxBatch || groups[0] == groups[n-1] {
		return ids
	}
	for i := slices.Index(groups, groups[n-1]); i < n; i++ {
		ids = append(ids, aws.ToString(received[i].MessageId))
	}
	return ids
}

// mostLooks is how often the messages of a group that are left are given back, and received again, without a new message.
const mostLooks = 3

// uncover gives back what is left of FIFO groups that go on, and reports whether it did: SQS shows no more of a group while messages
// of it are hidden. It is of use for the groups of which a receive had new messages, and for one that it cut off. A run that sends and
// deletes nothing gives back what was cut off of any group, as a listing does.
func (r *run) uncover(ctx context.Context, received []sqstypes.Message, batch []*Message) (gaveBack bool, err error) {
	if !r.d.fifo {
		return false, nil
	}
	cut := cutOff(received)
	again := map[string]bool{}
	for _, m := range batch {
		again[m.Group] = true
		r.looks[m.Group] = 0
	}
	if len(cut) > 0 {
		if group := r.results[cut[0]].Group; r.looks[group] < mostLooks {
			again[group] = true
			r.looks[group]++
		}
	}
	var ids []string
	if r.reads() {
		ids = cut
	}
	for group := range again {
		if r.goesOn(group) {
			ids = append(ids, r.left[group]...)
		}
	}
	slices.Sort(ids)
	var left []*heldMessage
	for _, id := range slices.Compact(ids) {
		left = append(left, r.held.handles(id)...)
	}
	if left = r.held.proven(left); len(left) == 0 {
		return false, nil
	}
	return true, r.held.giveBackThese(ctx, left)
}

// reads reports whether the run sends and deletes nothing.
func (r *run) reads() bool { return r.o.DryRun || r.done == ActionDeleted && !r.o.SkipAhead }

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
