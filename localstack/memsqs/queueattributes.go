package memsqs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	scopeQueue = "queue"
	scopeGroup = "messageGroup"
)

// attributes are the queue attributes that a client can set.
type attributes struct {
	set map[string]string // as given, and AWS's defaults

	Delay                     time.Duration
	MaximumMessageSize        int
	Retention                 time.Duration
	Wait                      time.Duration
	Visibility                time.Duration
	FIFO                      bool
	ContentBasedDeduplication bool
	DeduplicationScope        string
	Redrive                   *redrivePolicy
}

func defaults(fifo bool) map[string]string {
	d := map[string]string{
		"DelaySeconds": "0", "MaximumMessageSize": strconv.Itoa(maxMessageSize), "MessageRetentionPeriod": "345600",
		"ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30", "SqsManagedSseEnabled": "true",
	}
	if fifo {
		d["FifoQueue"], d["ContentBasedDeduplication"] = "true", "false"
		d["DeduplicationScope"], d["FifoThroughputLimit"] = scopeQueue, "perQueue"
	}
	return d
}

// ranges are the least and the greatest value of the numeric attributes.
var ranges = map[string][2]int{
	"DelaySeconds": {0, maxDelay}, "MaximumMessageSize": {1024, maxMessageSize}, "MessageRetentionPeriod": {60, 1209600},
	"ReceiveMessageWaitTimeSeconds": {0, maxWait}, "VisibilityTimeout": {0, maxVisibility}, "KmsDataKeyReusePeriodSeconds": {60, 86400},
}

// choices are the values of the attributes with fixed values.
var choices = map[string][]string{
	"FifoQueue": {"true"}, "ContentBasedDeduplication": {"true", "false"}, "SqsManagedSseEnabled": {"true", "false"},
	"DeduplicationScope": {scopeQueue, scopeGroup}, "FifoThroughputLimit": {"perQueue", "perMessageGroupId"},
}

// fifoOnly are the attributes that a standard queue refuses.
var fifoOnly = map[string]bool{"FifoQueue": true, "ContentBasedDeduplication": true, "DeduplicationScope": true, "FifoThroughputLimit": true}

// with returns a copy of a with the changes applied. An empty value removes the attribute.
func (a attributes) with(changes map[string]string, fifo bool) (attributes, error) {
	set := maps.Clone(a.set)
	for k, v := range changes {
		v = plain(k, v)
		if err := checkAttribute(k, v, fifo); err != nil {
			return a, err
		}
		if v == "" {
			delete(set, k)
		} else {
			set[k] = v
		}
	}
	switch kms := set["KmsMasterKeyId"] != ""; {
	case kms && plain("SqsManagedSseEnabled", changes["SqsManagedSseEnabled"]) == "true":
		return a, newError("InvalidAttributeName", "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	case kms:
		set["SqsManagedSseEnabled"] = "false"
	}
	if set["FifoThroughputLimit"] == "perMessageGroupId" && set["DeduplicationScope"] != scopeGroup {
		return a, invalidAttributeValue("FifoThroughputLimit")
	}
	out := attributes{
		set: set, FIFO: fifo,
		Delay: seconds(set["DelaySeconds"]), Retention: seconds(set["MessageRetentionPeriod"]),
		Wait: seconds(set["ReceiveMessageWaitTimeSeconds"]), Visibility: seconds(set["VisibilityTimeout"]),
		ContentBasedDeduplication: set["ContentBasedDeduplication"] == "true", DeduplicationScope: set["DeduplicationScope"],
	}
	out.MaximumMessageSize, _ = strconv.Atoi(set["MaximumMessageSize"]) // checked above
	if v := set["RedrivePolicy"]; v != "" {
		out.Redrive, _ = parseRedrive(v) // checked above
	}
	return out, nil
}

// plain returns the value of an attribute as SQS keeps it: it takes booleans in any case.
func plain(name, value string) string {
	if lower := strings.ToLower(value); slices.Contains(choices[name], "true") && (lower == "true" || lower == "false") {
		return lower
	}
	return value
}

func seconds(s string) time.Duration {
	n, _ := strconv.Atoi(s) // checked by checkAttribute
	return time.Duration(n) * time.Second
}

func checkAttribute(name, value string, fifo bool) error {
	if fifoOnly[name] && !fifo {
		if name == "DeduplicationScope" || name == "FifoThroughputLimit" {
			return newError("InvalidAttributeName", "You can specify the "+name+" only when FifoQueue is set to true.")
		}
		return invalidAttributeName(name)
	}
	if r, ok := ranges[name]; ok {
		if n, err := strconv.Atoi(value); err != nil || n < r[0] || n > r[1] {
			return invalidAttributeValue(name)
		}
		return nil
	}
	if c, ok := choices[name]; ok {
		if !slices.Contains(c, value) {
			return invalidAttributeValue(name)
		}
		return nil
	}
	switch name {
	case "RedrivePolicy":
		if value == "" {
			return nil
		}
		_, err := parseRedrive(value)
		return err
	case "Policy", "RedriveAllowPolicy":
		if value != "" && !json.Valid([]byte(value)) {
			return invalidAttributeValue(name)
		}
		return nil
	case "KmsMasterKeyId":
		return nil
	}
	return invalidAttributeName(name)
}

type getAttributesInput struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type attributesOutput struct {
	Attributes map[string]string `json:",omitempty"`
}

func (s *Server) getQueueAttributes(_ *call, in *getAttributesInput) (*attributesOutput, error) {
	out := &attributesOutput{Attributes: map[string]string{}}
	return out, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		all := q.allAttributes()
		for _, name := range in.AttributeNames {
			if name == "All" {
				maps.Copy(out.Attributes, all)
				continue
			}
			v, ok := all[name]
			if ok {
				out.Attributes[name] = v
			} else if !isKnownAttribute(name) {
				return invalidAttributeName(name)
			}
		}
		return nil
	})
}

func (q *queue) allAttributes() map[string]string {
	out := maps.Clone(q.attrs.set)
	if out["KmsMasterKeyId"] == "" {
		delete(out, "KmsDataKeyReusePeriodSeconds") // AWS does not show it without a key
	}
	out["QueueArn"] = q.arn
	out["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	out["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	out["ApproximateNumberOfMessages"] = strconv.Itoa(len(q.messages) - q.delayed - q.inFlight)
	out["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(q.inFlight)
	out["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(q.delayed)
	return out
}

// isKnownAttribute is true for an attribute that a queue may have, even if this queue does not have it.
func isKnownAttribute(name string) bool {
	_, hasRange := ranges[name]
	_, hasChoices := choices[name]
	return hasRange || hasChoices || name == "RedrivePolicy" || name == "RedriveAllowPolicy" || name == "Policy" || name == "KmsMasterKeyId"
}

type setAttributesInput struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(_ *call, in *setAttributesInput) (*empty, error) {
	return &empty{}, s.withQueue(in.QueueURL, func(q *queue, now time.Time) error {
		if len(in.Attributes) == 0 {
			return missingParameter("Attributes")
		}
		if v, ok := in.Attributes["FifoQueue"]; ok && q.attrs.FIFO && plain("FifoQueue", v) != "true" {
			return newError("InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
		}
		attrs, err := q.attrs.with(in.Attributes, q.attrs.FIFO)
		if err != nil {
			return err
		}
		if err := s.checkRedrive(attrs); err != nil {
			return err
		}
		q.setAttributes(attrs, now)
		return nil
	})
}

// setAttributes applies new attributes at once; on AWS it takes up to a minute. A new queue delay also applies to the
// messages that a FIFO queue already has. In a standard queue it applies to new messages only.
func (q *queue) setAttributes(attrs attributes, now time.Time) {
	delayChanged := q.attrs.FIFO && attrs.Delay != q.attrs.Delay
	q.attrs, q.modified = attrs, now
	if delayChanged {
		for _, m := range q.messages {
			if m.receipt == 0 {
				q.hide(m, m.enqueuedAt.Add(attrs.Delay), now)
			}
		}
	}
	q.advance(now)
	q.markChanged()
}
