package memsqs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type sendOption = func(*sqs.SendMessageInput)

func (x *fixture) try(body string, optFns ...sendOption) error {
	in := &sqs.SendMessageInput{QueueUrl: &x.url, MessageBody: &body}
	for _, f := range optFns {
		f(in)
	}
	_, err := x.c.SendMessage(x.Context(), in)
	return err
}

func attribute(name, dataType, value string) sendOption {
	return func(in *sqs.SendMessageInput) {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		v := types.MessageAttributeValue{DataType: &dataType}
		if strings.HasPrefix(dataType, "Binary") {
			v.BinaryValue = []byte(value)
		} else if value != "" {
			v.StringValue = &value
		}
		in.MessageAttributes[name] = v
	}
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ body, code string }{
		"empty":           {"", "MissingParameter"},
		"NUL":             {"a\x00", "InvalidMessageContents"},
		"escape":          {"\x1b", "InvalidMessageContents"},
		"not a character": {"\uffff", "InvalidMessageContents"},
		"white space":     {"\t\r\n ", ""},
		"replacement":     {"\ufffd", ""},
		"private use":     {"\ue000", ""},
		"astral":          {"\U0001f600", ""},
		"1 MiB":           {strings.Repeat("x", 1<<20), ""},
		"1 MiB + 1":       {strings.Repeat("x", 1<<20+1), invalidValue},
	} {
		t.Run(name, func(t *testing.T) {
			standard(t, func(x *fixture) {
				err := x.try(c.body)
				if c.code == "" {
					x.ok(err)
					x.want(c.body)
					return
				}
				x.code(err, c.code)
				if _, ok := errors.AsType[*types.InvalidMessageContents](err); ok != (c.code == "InvalidMessageContents") {
					x.Errorf("got %T", err)
				}
				x.want()
			})
		})
	}
}

func TestParameters(t *testing.T) {
	group := func(s string) sendOption { return func(in *sqs.SendMessageInput) { in.MessageGroupId = &s } }
	dedup := func(s string) sendOption { return func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = &s } }
	delay := func(n int32) sendOption { return func(in *sqs.SendMessageInput) { in.DelaySeconds = n } }
	all := func(fs ...sendOption) sendOption {
		return func(in *sqs.SendMessageInput) {
			for _, f := range fs {
				f(in)
			}
		}
	}
	long := strings.Repeat("i", 129)
	for name, c := range map[string]struct {
		queue string
		opt   sendOption
		code  string
	}{
		"delay":                      {"jobs", delay(900), ""},
		"long delay":                 {"jobs", delay(901), invalidValue},
		"negative delay":             {"jobs", delay(-1), invalidValue},
		"delay on FIFO":              {"jobs.fifo", all(group("g"), dedup("d"), delay(1)), invalidValue},
		"group on standard":          {"jobs", group("tenant"), ""},
		"dedup ID on standard":       {"jobs", dedup("d"), invalidValue},
		"bad group":                  {"jobs", group("a b"), invalidValue},
		"empty group":                {"jobs", group(""), invalidValue},
		"long group":                 {"jobs.fifo", all(group(long), dedup("d")), invalidValue},
		"longest group":              {"jobs.fifo", all(group(long[1:]), dedup("d")), ""},
		"long dedup ID":              {"jobs.fifo", all(group("g"), dedup(long)), invalidValue},
		"dedup ID beyond ASCII":      {"jobs.fifo", all(group("g"), dedup("é")), invalidValue},
		"punctuation":                {"jobs.fifo", all(group("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), dedup("~")), ""},
		"10 attributes":              {"jobs", tenAttributes, ""},
		"11 attributes":              {"jobs", all(tenAttributes, attribute("k", "String", "v")), invalidValue},
		"custom type":                {"jobs", attribute("a", "String.mine", "v"), ""},
		"unknown type":               {"jobs", attribute("a", "Boolean", "v"), invalidValue},
		"no type":                    {"jobs", attribute("a", "", "v"), invalidValue},
		"no value":                   {"jobs", attribute("a", "String", ""), invalidValue},
		"no binary":                  {"jobs", attribute("a", "Binary", ""), invalidValue},
		"number":                     {"jobs", attribute("a", "Number", "-1.5e3"), ""},
		"not a number":               {"jobs", attribute("a", "Number", "one"), invalidValue},
		"illegal characters":         {"jobs", attribute("a", "String", "\x01"), invalidValue},
		"letters of other scripts":   {"jobs", attribute("größe_名", "String", "v"), ""},
		"a sign of another script":   {"jobs", attribute("a·b", "String", "v"), invalidValue},
		"legal name":                 {"jobs", attribute("a.b_c-1", "String", "v"), ""},
		"reserved name":              {"jobs", attribute("Aws.x", "String", "v"), invalidValue},
		"also reserved":              {"jobs", attribute("AMAZON.x", "String", "v"), invalidValue},
		"starts with period":         {"jobs", attribute(".a", "String", "v"), invalidValue},
		"ends with period":           {"jobs", attribute("a.", "String", "v"), invalidValue},
		"two periods":                {"jobs", attribute("a..b", "String", "v"), invalidValue},
		"name with space":            {"jobs", attribute("a b", "String", "v"), invalidValue},
		"long name":                  {"jobs", attribute(strings.Repeat("a", 257), "String", "v"), invalidValue},
		"unknown system attribute":   {"jobs", system("Else", "String"), invalidValue},
		"trace header of wrong type": {"jobs", system("AWSTraceHeader", "Number"), invalidValue},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c.queue, attrsFor(strings.TrimPrefix(c.queue, "jobs")), func(x *fixture) {
				err := x.try("body", c.opt)
				if c.code == "" {
					x.ok(err)
				} else {
					x.code(err, c.code)
				}
			})
		})
	}
}

func tenAttributes(in *sqs.SendMessageInput) {
	for _, n := range "abcdefghij" {
		attribute(string(n), "String", "v")(in)
	}
}

func system(name, dataType string) sendOption {
	return func(in *sqs.SendMessageInput) {
		in.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{name: {DataType: &dataType, StringValue: aws.String("1")}}
	}
}

func TestSizeCountsAttributes(t *testing.T) {
	run(t, "jobs", attrs{"MaximumMessageSize": "1024"}, func(x *fixture) {
		fits := strings.Repeat("x", 1024-len("name")-len("String")-len("value"))
		x.ok(x.try(fits, attribute("name", "String", "value"), system("AWSTraceHeader", "String")))
		x.code(x.try(fits+"x", attribute("name", "String", "value")), invalidValue)
	})
}
