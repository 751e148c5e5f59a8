package deadletter

import (
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce"
)

const traceParent = "traceparent"

// traceContext are the attributes of W3C trace context, in the order in which they are left out where the host's attributes
// have no room: a trace with a gap is better than an event that has another key after a redrive, and runs again.
// https://www.w3.org/TR/trace-context/
var traceContext = []string{"tracestate", traceParent}

// leaveOut removes the source or an attribute of trace context from the copy, and reports whether there was one. A traceparent becomes the
// copy's trace header, which takes no room, unless the message has one.
func leaveOut(in *sqs.SendMessageInput, m *sqsonce.Message, name string) bool {
	if _, there := in.MessageAttributes[name]; !there {
		return false
	}
	delete(in.MessageAttributes, name)
	if header := xrayHeader(m.Attributes[name].String); name == traceParent && header != "" && m.TraceHeader == "" {
		setTraceHeader(in, header)
	}
	return true
}

func setTraceHeader(in *sqs.SendMessageInput, header string) {
	in.MessageSystemAttributes = map[string]sqstypes.MessageSystemAttributeValue{
		string(sqstypes.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: &header},
	}
}

var traceParentForm = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{8})([0-9a-f]{24})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])(-.*)?$`)

// xrayHeader returns a traceparent in X-Ray's form; "" if it is none.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
func xrayHeader(traceParent string) string {
	m := traceParentForm.FindStringSubmatch(traceParent)
	if m == nil {
		return ""
	}
	sampled := "0"
	if strings.Contains("13579bdf", m[4]) { // the last bit of the flags
		sampled = "1"
	}
	return "Root=1-" + m[1] + "-" + m[2] + ";Parent=" + m[3] + ";Sampled=" + sampled
}
