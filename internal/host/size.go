package host

import "github.com/sqsonce/sqsonce"

// MaxAttributes is how many attributes a message may have.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const MaxAttributes = 10

// MessageBytes returns the bytes of a message as SQS counts them.
func MessageBytes(body string, attrs map[string]sqsonce.Attribute) int {
	n := len(body)
	for name, a := range attrs {
		n += AttributeBytes(name, a)
	}
	return n
}

// AttributeBytes are those of an attribute's name, type and value.
func AttributeBytes(name string, a sqsonce.Attribute) int {
	return len(name) + len(a.Type) + len(a.String) + len(a.Binary)
}
