package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

var served = map[string]bool{"sqs": true, "dynamodb": true, "lambda": true}

// hints say what to do in place of a service.
var hints = map[string]string{
	"cloudformation": "localaws -template creates the queues, tables and functions of a template.",
	"iam":            "localaws checks no permissions: any credentials will do.",
	"sts":            "localaws checks no credentials: its account is " + account + ".",
	"sns":            "Send the message to the queue with the body that SNS would deliver.",
	"s3":             "Tests of large bodies need an S3 of their own.",
	"events":         "Send the event to the queue with the body that EventBridge would deliver.",
	"logs":           "localaws writes the output of functions to its standard error.",
}

// refused answers requests for services that localaws does not have, in the form of their errors. The status is not one that SDKs retry.
func refused(rw http.ResponseWriter, r *http.Request) bool {
	service := awsjson.ScopeOf(r).Service
	if service == "" || served[service] {
		return false
	}
	text := fmt.Sprintf("localaws has SQS, DynamoDB with its streams, and some operations of Lambda. It does not have %s. %s Another emulator's address may be AWS_ENDPOINT_URL_%s.",
		service, hints[service], strings.ToUpper(strings.ReplaceAll(service, "-", "_")))
	const code = "UnknownOperationException"
	if r.Header.Get("X-Amz-Target") != "" || strings.Contains(r.Header.Get("Content-Type"), "json") {
		rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
		rw.Header().Set("X-Amzn-Errortype", code)
		rw.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(rw).Encode(map[string]string{"__type": code, "message": text}) // the client disconnected
		return true
	}
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder returns no errors
	body := "<Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + escaped.String() + "</Message></Error>"
	if service != "s3" {
		body = "<ErrorResponse>" + body + "</ErrorResponse>"
	}
	rw.Header().Set("Content-Type", "text/xml")
	rw.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(rw, body) // as above
	return true
}
