package memsqs

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	scopeQueue = "queue"
	scopeGroup = "messageGroup"
)

// attributes are a queue's attributes that can be set, with AWS's defaults.
type attributes struct {
	set map[string]string // as given, with defaults

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

type redrivePolicy struct {
	TargetARN       string
	MaxReceiveCount int
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

// ranges are the numeric attributes: least and greatest value.
var ranges = map[string][2]int{
	"DelaySeconds": {0, maxDelay}, "MaximumMessageSize": {1024, maxMessageSize}, "MessageRetentionPeriod": {60, 1209600},
	"ReceiveMessageWaitTimeSeconds": {0, maxWait}, "VisibilityTimeout": {0, maxVisibility}, "KmsDataKeyReusePeriodSeconds": {60, 86400},
}

// choices are the attributes with fixed values.
var choices = map[string][]string{
	"FifoQueue": {"true"}, "ContentBasedDeduplication": {"true", "false"}, "SqsManagedSseEnabled": {"true", "false"},
	"DeduplicationScope": {scopeQueue, scopeGroup}, "FifoThroughputLimit": {"perQueue", "perMessageGroupId"},
}

// fifoOnly are refused on a standard queue.
var fifoOnly = map[string]bool{"FifoQueue": true, "ContentBasedDeduplication": true, "DeduplicationScope": true, "FifoThroughputLimit": true}

// with returns the attributes with changes made. An empty policy is removed.
func (a attributes) with(changes map[string]string, fifo bool) (attributes, error) {
	set := map[string]string{}
	for k, v := range a.set {
		set[k] = v
	}
	for k, v := range changes {
		if err := checkAttribute(k, v, fifo); err != nil {
			return a, err
		}
		if v == "" {
			delete(set, k)
		} else {
			set[k] = v
		}
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

func seconds(s string) time.Duration {
	n, _ := strconv.Atoi(s) // checked before
	return time.Duration(n) * time.Second
}

func checkAttribute(name, value string, fifo bool) error {
	if fifoOnly[name] && !fifo {
		return invalidAttributeName(name)
	}
	if r, ok := ranges[name]; ok {
		if n, err := strconv.Atoi(value); err != nil || n < r[0] || n > r[1] {
			return invalidAttributeValue(name)
		}
		return nil
	}
	if c, ok := choices[name]; ok {
		for _, v := range c {
			if v == value {
				return nil
			}
		}
		return invalidAttributeValue(name)
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

// parseRedrive reads a redrive policy. AWS takes maxReceiveCount as a number and as a string.
func parseRedrive(value string) (*redrivePolicy, error) {
	var p struct {
		DeadLetterTargetARN string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	bad := func(reason string) error { return invalidValue(value, "RedrivePolicy", reason) }
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return nil, bad("Redrive policy is not a valid JSON map.")
	}
	if p.DeadLetterTargetARN == "" {
		return nil, bad("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	if p.MaxReceiveCount == nil {
		return nil, bad("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	n, err := strconv.Atoi(strings.Trim(string(p.MaxReceiveCount), `"`))
	if err != nil || n < 1 || n > 1000 {
		return nil, bad("Invalid value for maxReceiveCount: " + string(p.MaxReceiveCount) + ", valid values are from 1 to 1000 both inclusive.")
	}
	return &redrivePolicy{p.DeadLetterTargetARN, n}, nil
}
