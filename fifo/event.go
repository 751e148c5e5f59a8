package fifo

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Event is one occurrence to publish.
type Event struct {
	// ID names the occurrence, not the thing that it happened to: "ord-42/v3", the ID of an outbox row, a UUID that is stored
	// with the event. Make it before the first attempt to publish, and keep it in every later one. It is required, and may be
	// any text that SQS accepts.
	ID string
	// Group is the MessageGroupId. SQS delivers the events of one group in the order they were published. It has 1 to 128
	// printable ASCII characters without spaces. A FIFO queue requires it. On a standard queue it is the tenant of a fair queue,
	// and may be empty. Compute it from the event alone. On a queue that deduplicates by group, an event that is sent again with
	// another group is a new message.
	Group string
	// Body is the message body. It is required, and must be valid UTF-8 of the characters that XML allows.
	Body string
	// Type is sent as the event-type attribute.
	// Default: none.
	Type string
	// TraceHeader is sent as the AWSTraceHeader system attribute. It does not count towards the size of the message.
	// Default: none.
	TraceHeader string
	// Attributes are further message attributes. SQS accepts 10, and the publisher adds 3.
	// Default: none. Limits: at most 7.
	Attributes map[string]sqsonce.Attribute
	// Delay is how long SQS hides the event at first, from the call of Publish, PublishAll or Enqueue, rounded up to
	// whole seconds. A repeated attempt asks for the rest, at least 1 s, by the process's clocks: the event comes early
	// if the wall clock is set forward between two attempts. It replaces the queue's DelaySeconds, and telemetry's time_in_queue
	// counts it. At the end of its retention SQS deletes a message that is still hidden too.
	// Default: the queue's DelaySeconds. Limits: at most 15 min, and only on a standard queue. Outboxes don't keep it.
	Delay time.Duration
}

// maxDelay is SQS's longest DelaySeconds.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-timers.html
const maxDelay = 15 * time.Minute

// Check returns the error with which [Publisher.Publish] would refuse the event on any FIFO queue, before it sends anything.
// The error is a [*PublishError], which matches [ErrNotSent] and wraps one [*sqsonce.OptionError] per bad field, joined.
// Use Check in a program that stores events and publishes them later. It requires Group, and checks the size against SQS's 1 MiB.
// A queue's own limit may be less. For a namespace that [NewPublisher] would refuse the error is an OptionError without a
// PublishError. Check makes no call.
func (e Event) Check(namespace string) error {
	if err := checkNamespace(namespace); err != nil {
		return err
	}
	// That of a publisher that has sent nothing, to a queue with the highest limit.
	p := &Publisher{client: &safeClient{}, namespace: namespace, fifo: true, limit: sizeLimit{bytes: maxMessageBytes}}
	return p.check(&entry{event: e})
}

// DedupID returns the MessageDeduplicationId of an event: [sqsonce.EventKey] of the namespace and the event's ID, which is
// also the key of the event's record. An empty id is [sqsonce.ErrNoEventID].
func DedupID(namespace, id string) (string, error) { return sqsonce.EventKey(namespace, id) }

// Receipt says that an event is in the queue.
type Receipt struct {
	// MessageID is the SQS message ID.
	MessageID string
	// Sequence is the SequenceNumber of a FIFO queue. It is empty for a standard queue.
	Sequence string
	// DedupID is the MessageDeduplicationId that was sent. It is empty for a standard queue.
	DedupID string
	// Attempts is the number of requests for this event. On a standard queue more than one may mean more than one message.
	Attempts int
}

// validate returns one OptionError for each reason for which SQS would refuse the event. So when SQS refuses an entry of a
// batch, the cause is the service and not the input. Publisher.checkSize checks the size: its limit depends on the queue.
func (e *Event) validate(fifo bool) error {
	errs := checkAttributes("Event.Attributes", e.Attributes, maxAttributes, reserved)
	errs = append(errs, checkText("Event.ID", e.ID), checkGroup("Event.Group", e.Group, fifo), checkText("Event.Body", e.Body))
	if e.Type != "" {
		errs = append(errs, checkText("Event.Type", e.Type))
	}
	if e.TraceHeader != "" {
		errs = append(errs, checkText("Event.TraceHeader", e.TraceHeader))
	}
	if err := checkDelay(e.Delay, fifo); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkDelay(d time.Duration, fifo bool) error {
	switch {
	case d == 0:
		return nil
	case fifo:
		return badField("Event.Delay", "is %s, must be 0: SQS delays single messages of standard queues only, and an outbox keeps no delay", d)
	case d < 0 || d > maxDelay:
		return badField("Event.Delay", "is %s, must be positive and at most 15 min", d)
	}
	return nil
}

// checkText returns an error for a text that cannot be a body or a string value. SQS refuses all of these but invalid
// UTF-8: the SDK replaces that with U+FFFD, SQS stores the replacement, and the checksum in the response does not match.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func checkText(field, s string) error {
	if s == "" {
		return badField(field, "is empty")
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return badField(field, "is not UTF-8 at byte %d", i)
			}
		}
		if !isXMLChar(r) {
			return badField(field, "has character %U at byte %d, must be #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD or #x10000 to #x10FFFF", r, i)
		}
	}
	return nil
}

// isXMLChar reports whether XML 1.0 has the character. Valid UTF-8 has no surrogates.
func isXMLChar(r rune) bool {
	if r < 0x20 {
		return r == '\t' || r == '\n' || r == '\r'
	}
	return r != 0xfffe && r != 0xffff
}

// checkGroup returns an error for a text that cannot be a MessageGroupId. A message of a standard queue needs none.
func checkGroup(field, group string, fifo bool) error {
	if group == "" && fifo {
		return badField(field, "is empty, must be set for a FIFO queue")
	}
	return checkToken(field, group)
}

// checkToken returns an error for a text that cannot be a MessageGroupId or a MessageDeduplicationId.
func checkToken(field, s string) error {
	if len(s) > 128 {
		return badField(field, "has %d bytes, must have at most 128", len(s))
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return badField(field, "has byte %#x at %d, must be printable ASCII without the space", s[i], i)
		}
	}
	return nil
}

// maxAttributes is SQS's most without event-id, event-source and event-type.
const maxAttributes = host.MaxAttributes - 3

// reserved are the names of attributes that sqsonce itself sends. An event-key would replace the event's identity, and a
// reject-reason or a dead-letter-source would look like one that a worker wrote.
var reserved = []string{
	sqsonce.AttrEventID, sqsonce.AttrEventSource, sqsonce.AttrEventType, sqsonce.AttrEventKey, sqsonce.AttrRejectReason,
	sqsonce.AttrDeadLetterSource, sqsonce.AttrRecordKey,
}

// SQS's rules for attributes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
var (
	attributeNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	attributeTypes = regexp.MustCompile(`^(String|Number|Binary)(\.(?s:.)+)?$`)
	numbers        = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

func checkAttributes(prefix string, attrs map[string]sqsonce.Attribute, most int, reserved []string) []error {
	var errs []error
	if len(attrs) > most {
		errs = append(errs, badField(prefix, "has %d attributes, must have at most %d", len(attrs), most))
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		field := fmt.Sprintf("%s[%.256q]", prefix, name)
		if problem := nameProblem(name, reserved); problem != "" {
			errs = append(errs, badField(field, "%s", problem))
		}
		errs = append(errs, checkValue(field, attrs[name]))
	}
	return errs
}

func nameProblem(name string, reserved []string) string {
	lower := strings.ToLower(name)
	switch {
	case slices.Contains(reserved, name):
		return "has a reserved name"
	case !attributeNames.MatchString(name):
		return "has a bad name, must be 1 to 256 of A-Z a-z 0-9 _ - ."
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return "has a bad name, must not start or end with a period or have two in a row"
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return "has a bad name, must not start with AWS. or Amazon."
	}
	return ""
}

func checkValue(field string, a sqsonce.Attribute) error {
	if len(a.Type) > 256 || !attributeTypes.MatchString(a.Type) || checkText("", a.Type) != nil {
		return badField(field, "has type %.256q, must be String, Number or Binary, or one of these with a label such as Number.int", a.Type)
	}
	if isBinary(a) {
		if len(a.Binary) == 0 || a.String != "" {
			return badField(field, "is a Binary attribute, must have a Binary value and no String")
		}
		return nil
	}
	if len(a.Binary) > 0 {
		return badField(field, "is a %s attribute, must have no Binary value", a.Type)
	}
	if err := checkText(field, a.String); err != nil {
		return err
	}
	if strings.HasPrefix(a.Type, "Number") && !isNumber(a.String) {
		return badField(field, "is not a number of at most 38 digits, with an absolute value of 0 or 10^-128 to 10^126")
	}
	return nil
}

func isBinary(a sqsonce.Attribute) bool { return strings.HasPrefix(a.Type, "Binary") }

func isNumber(s string) bool {
	if !numbers.MatchString(s) {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	digits := strings.Trim(strings.ReplaceAll(strings.TrimLeft(mantissa, "+-"), ".", ""), "0") // as SQS counts them
	if digits == "" {
		return true // zero, with any exponent
	}
	v, err := strconv.ParseFloat(s, 64)
	v = math.Abs(v)
	return err == nil && len(digits) <= 38 && v >= 1e-128 && v <= 1e126
}

// cloneAttributes copies the attributes, since the caller may change its own after the call.
func cloneAttributes(attrs map[string]sqsonce.Attribute) map[string]sqsonce.Attribute {
	out := maps.Clone(attrs)
	for name, a := range out {
		a.Binary = bytes.Clone(a.Binary)
		out[name] = a
	}
	return out
}

// sentAttributes returns the event's attributes and those that the publisher adds.
func (e *Event) sentAttributes(namespace string) map[string]sqsonce.Attribute {
	out := make(map[string]sqsonce.Attribute, len(e.Attributes)+3)
	maps.Copy(out, e.Attributes)
	out[sqsonce.AttrEventID] = sqsonce.Attribute{Type: "String", String: e.ID}
	out[sqsonce.AttrEventSource] = sqsonce.Attribute{Type: "String", String: namespace}
	if e.Type != "" {
		out[sqsonce.AttrEventType] = sqsonce.Attribute{Type: "String", String: e.Type}
	}
	return out
}

const (
	// maxMessageBytes is the limit of one message, and of all messages of a request together. Both are inclusive and count
	// the body and the names, types and values of attributes.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	maxMessageBytes = 1 << 20
	// leastQueueLimit is the smallest MaximumMessageSize that a queue can have.
	leastQueueLimit = 1 << 10
	// batchMargin is not used in a request of several messages: AWS does not say whether groups and deduplication IDs,
	// at most 256 bytes a message, count towards the limit of a request.
	batchMargin = 4 << 10
)
