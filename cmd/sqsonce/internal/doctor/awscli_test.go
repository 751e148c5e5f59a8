package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
)

// topic is what a person sets before a fix that needs an SNS topic is pasted.
const topic = testworld.Topic

// paste runs a fix as a shell does that has the AWS CLI: each "aws" of it becomes a call of the SDK. Whatever else is in it fails.
func paste(t *testing.T, c Clients, fix string) {
	t.Helper()
	calls, err := words(fix)
	if err != nil {
		t.Fatalf("the fix %q is no command: %v", fix, err)
	}
	for _, call := range calls {
		if err := awsCall(context.Background(), c, call); err != nil {
			t.Fatalf("fix %q: %v", fix, err)
		}
	}
}

// words returns the arguments of each aws that a shell runs.
func words(command string) ([][]string, error) {
	cmd := exec.Command("sh", "-euc", "aws() { printf '%s\\0' \"$@\"; printf '\\001\\0'; }\nsleep() { :; }\n"+command)
	cmd.Env = []string{"PATH=/nonexistent", "ALARM_TOPIC=" + topic}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	var calls [][]string
	var call []string
	for word := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if word == "\x01" {
			calls, call = append(calls, call), nil
			continue
		}
		call = append(call, word)
	}
	if len(calls) == 0 || call != nil {
		return nil, fmt.Errorf("no aws in it: %q", out)
	}
	return calls, nil
}

// awsCall makes the call that `aws SERVICE OPERATION --flags` makes.
func awsCall(ctx context.Context, c Clients, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%q has no service and operation", args)
	}
	client, ok := map[string]any{
		"sqs": c.SQS, "dynamodb": c.DynamoDB, "lambda": c.Lambda, "iam": c.IAM, "cloudwatch": c.CloudWatch, "sts": c.STS,
	}[args[0]]
	if !ok {
		return fmt.Errorf("no service %q", args[0])
	}
	operation := ""
	for part := range strings.SplitSeq(args[1], "-") {
		operation += strings.ToUpper(part[:1]) + part[1:]
	}
	method := reflect.ValueOf(client).MethodByName(operation)
	if !method.IsValid() || strings.ToLower(args[1]) != args[1] {
		return fmt.Errorf("%s has no operation %q", args[0], args[1])
	}
	in := reflect.New(method.Type().In(1).Elem())
	for rest := args[2:]; len(rest) > 0; {
		flag, isFlag := strings.CutPrefix(rest[0], "--")
		if !isFlag {
			return fmt.Errorf("%q is no flag", rest[0])
		}
		n := 1
		for n < len(rest) && !strings.HasPrefix(rest[n], "--") {
			n++
		}
		if err := setFlag(in, flag, rest[1:n]); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		rest = rest[n:]
	}
	err, _ := method.Call([]reflect.Value{reflect.ValueOf(ctx), in})[1].Interface().(error)
	return err
}

var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// setFlag sets the member of an input that a flag names: FunctionResponseTypes is --function-response-types.
func setFlag(in reflect.Value, flag string, values []string) error {
	if flag == "cli-input-json" {
		return strictJSON(values[0], in.Interface())
	}
	of := in.Elem().Type()
	for i := range of.NumField() {
		name := strings.ToLower(upper.ReplaceAllString(of.Field(i).Name, "$1-$2"))
		field := in.Elem().Field(i)
		isBool := field.Type() == reflect.TypeFor[*bool]()
		switch {
		case !of.Field(i).IsExported():
		case isBool && len(values) == 0 && (flag == name || flag == "no-"+name):
			return setValue(field, strconv.FormatBool(flag == name))
		case flag == name && len(values) == 0:
			return fmt.Errorf("needs a value")
		case flag == name && field.Kind() == reflect.Slice && !strings.HasPrefix(values[0], "["):
			for _, v := range values {
				one := reflect.New(field.Type().Elem()).Elem()
				if err := setValue(one, v); err != nil {
					return err
				}
				field.Set(reflect.Append(field, one))
			}
			return nil
		case flag == name && len(values) > 1:
			return fmt.Errorf("has several values: %q", values)
		case flag == name:
			return setValue(field, values[0])
		}
	}
	return fmt.Errorf("%s has no such member", of)
}

// setValue sets a value from a word: plain, JSON, or the shorthand of maps and structures, A=1,B=2.
func setValue(to reflect.Value, word string) error {
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return setValue(to.Elem(), word)
	case reflect.String:
		to.SetString(word)
		return nil
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return strictJSON(word, to.Addr().Interface())
	}
	if strings.HasPrefix(word, "{") || strings.HasPrefix(word, "[") {
		return strictJSON(word, to.Addr().Interface())
	}
	if to.Kind() == reflect.Map {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for pair := range strings.SplitSeq(word, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is no pair of %q", pair, word)
		}
		if to.Kind() == reflect.Map {
			to.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(value))
			continue
		}
		field := to.FieldByName(name)
		if !field.IsValid() {
			return fmt.Errorf("%s has no member %q", to.Type(), name)
		}
		if err := setValue(field, value); err != nil {
			return err
		}
	}
	return nil
}

func strictJSON(text string, to any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
