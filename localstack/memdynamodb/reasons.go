package memdynamodb

import (
	"errors"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/fault"
	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// reason is why one action cancels its transaction; "None" if it does not.
type reason struct {
	Code    string
	Message string    `json:",omitempty"`
	Item    *attr.Map `json:",omitempty"`
}

var reasonMessages = map[string]string{
	"ConditionalCheckFailed":        "The conditional request failed",
	"TransactionConflict":           "Transaction is ongoing for the item",
	"ProvisionedThroughputExceeded": "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
	"ThrottlingError":               "Throughput exceeds the current capacity for one or more global secondary indexes.",
}

// reason evaluates the change and says why it cancels the transaction.
func (c *change) reason() reason {
	err := c.evaluate()
	if err == nil {
		return reason{Code: "None"}
	}
	if err == errCondition {
		r := reason{Code: "ConditionalCheckFailed", Message: errCondition.Message}
		if c.returnOld && c.old != nil {
			r.Item = &c.old
		}
		return r
	}
	return invalidReason(err)
}

func invalidReason(err error) reason {
	r := reason{Code: "ValidationError"}
	if e, ok := errors.AsType[*awsjson.Error](answerError(err)); ok {
		r.Message = e.Message
	}
	return r
}

// injectedReasons is one reason for each action: the rule's where it hits, else None.
func injectedReasons(rule *fault.Rule, n int) []reason {
	reasons := make([]reason, n)
	for i := range reasons {
		reasons[i].Code = "None"
		if rule != nil && rule.Do == fault.FailEntries && rule.Hits(i) {
			code := rule.Code
			if code == "" {
				code = "TransactionConflict"
			}
			reasons[i] = reason{Code: code, Message: reasonMessages[code]}
		}
	}
	return reasons
}

// cancelled is the error of a transaction with a reason other than None, its reasons aligned with the actions.
func cancelled(reasons []reason) error {
	codes := make([]string, len(reasons))
	fails := false
	for i, r := range reasons {
		codes[i] = r.Code
		fails = fails || r.Code != "None"
	}
	if !fails {
		return nil
	}
	return &awsjson.Error{
		Code:    "TransactionCanceledException",
		Message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		Fields:  map[string]any{"CancellationReasons": reasons},
	}
}
