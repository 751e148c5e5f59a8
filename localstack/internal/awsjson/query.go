package awsjson

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// Query reports whether a request is of the query protocol, which SQS had before JSON and other services have still. Its parameters
// are in the URL, or in a form.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-xml.html
func Query(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") ||
		r.URL != nil && r.URL.RawQuery != "" && r.URL.Query().Has("Action")
}

// Health reports whether a request asks for nothing but an answer.
func Health(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !Query(r)
}

// refuseQuery answers in the form that a client of the query protocol reads.
func (s *Server) refuseQuery() response {
	var message strings.Builder
	_ = xml.EscapeText(&message, []byte(s.svc.Name+" does not offer the query protocol, nor services that have no other one: only SQS and DynamoDB by AWS JSON 1.0, with X-Amz-Target, as SDKs since 2024 send it")) // a Builder returns no errors
	body := fmt.Sprintf(`<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>%s</Message></Error><RequestId>00000000-0000-4000-8000-%012x</RequestId></ErrorResponse>`,
		&message, s.nextID.Add(1))
	return response{status: http.StatusBadRequest, header: http.Header{"Content-Type": {"text/xml"}}, body: []byte(body)}
}
