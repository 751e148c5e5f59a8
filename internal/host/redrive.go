package host

import (
	"encoding/json"
	"strconv"
)

// ParseRedrivePolicy reads a queue's RedrivePolicy: the ARN of the dead-letter queue, and maxReceiveCount, which is 0 where
// it is missing or cannot be read. SQS returns what was set: a number, or a number in a string.
func ParseRedrivePolicy(text string) (deadLetterARN string, maxReceives int, err error) {
	var policy struct {
		Target string      `json:"deadLetterTargetArn"`
		Max    json.Number `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return "", 0, err
	}
	if n, err := strconv.Atoi(policy.Max.String()); err == nil && n > 0 {
		maxReceives = n
	}
	return policy.Target, maxReceives, nil
}
