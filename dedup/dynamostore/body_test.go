package dynamostore

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"pgregory.net/rapid"

	"github.com/sqsonce/sqsonce/dedup"
)

// A shared call is the same request as the SDK's own, whatever is in it: decoded, and in all that is around it.
func TestBodyIsTheSDKs(t *testing.T) {
	t.Parallel()
	texts := newStatements(testTable)
	rapid.Check(t, func(t *rapid.T) {
		in := &dynamodb.BatchExecuteStatementInput{
			Statements:             rapid.SliceOfN(statementOf(texts), 1, maxStatements).Draw(t, "statements"),
			ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
		}
		sameRequest(t, &texts, in)
	})
}

// What the store itself sends is written by its own serializer: nothing in it has to be left to the SDK.
func TestBodyOfTheStoresOwn(t *testing.T) {
	t.Parallel()
	s, err := New((&bed{}).client(roundTripper(nil)), testTable)
	if err != nil {
		t.Fatal(err)
	}
	c := dedup.Claim{Key: "billing#a\"\\\n\x00\u2028<é\xff", Owner: "o", Lease: lease, Attempt: 3}
	in := &dynamodb.BatchExecuteStatementInput{ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal}
	for _, st := range []*statement{s.insertion(s.newAcquisition(c, 0, s.clock.look())), s.completionOf(c.Key, c.Owner)} {
		in.Statements = append(in.Statements, ddbtypes.BatchStatementRequest{Statement: st.text, Parameters: st.values})
	}
	if _, ok := s.group.texts.appendBody(nil, in); !ok {
		t.Error("left to the SDK")
	}
	sameRequest(t, &s.group.texts, in)
}

// An input that a client's middleware has added to goes as it is.
func TestBodyOfOtherInputs(t *testing.T) {
	t.Parallel()
	texts := newStatements(testTable)
	key := []ddbtypes.AttributeValue{text("a")}
	plain := ddbtypes.BatchStatementRequest{Statement: texts.complete.text, Parameters: key}
	for name, change := range map[string]func(*dynamodb.BatchExecuteStatementInput){
		"no capacity":     func(in *dynamodb.BatchExecuteStatementInput) { in.ReturnConsumedCapacity = "" },
		"consistent read": func(in *dynamodb.BatchExecuteStatementInput) { in.Statements[1].ConsistentRead = aws.Bool(true) },
		"old item": func(in *dynamodb.BatchExecuteStatementInput) {
			in.Statements[1].ReturnValuesOnConditionCheckFailure = ddbtypes.ReturnValuesOnConditionCheckFailureAllOld
		},
		"no parameters": func(in *dynamodb.BatchExecuteStatementInput) { in.Statements[1].Parameters = nil },
		"binary": func(in *dynamodb.BatchExecuteStatementInput) {
			in.Statements[1].Parameters = []ddbtypes.AttributeValue{&ddbtypes.AttributeValueMemberB{Value: []byte{1}}}
		},
		"another text": func(in *dynamodb.BatchExecuteStatementInput) {
			in.Statements[1].Statement = aws.String(strings.ToLower(*plain.Statement))
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &dynamodb.BatchExecuteStatementInput{
				Statements:             []ddbtypes.BatchStatementRequest{plain, plain},
				ReturnConsumedCapacity: ddbtypes.ReturnConsumedCapacityTotal,
			}
			change(in)
			sameRequest(t, &texts, in)
		})
	}
}

// A client that speaks another protocol than JSON 1.0, or that in its own way, is left to speak it.
func TestBodyOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	json11 := awsjson.New11(schemas.DynamoDB_20120810)
	itsWay := struct{ smithyhttp.ClientProtocol }{awsjson.New10(schemas.DynamoDB_20120810)}
	for _, own := range []smithyhttp.ClientProtocol{nil, json11, itsWay} {
		o := dynamodb.Options{Protocol: own}
		texts := newStatements(testTable)
		texts.with(new(room))(&o)
		if o.Protocol != own {
			t.Errorf("got protocol %T, want the client's own %T", o.Protocol, own)
		}
	}
}

func statementOf(texts statements) *rapid.Generator[ddbtypes.BatchStatementRequest] {
	anyText := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), // not UTF-8, control characters
		rapid.StringMatching(`[a-z#"\\<>&/\x00-\x1f\x7f\x{2028}\x{fffd}]{0,20}`),
	)
	value := rapid.Custom(func(t *rapid.T) ddbtypes.AttributeValue {
		if rapid.Bool().Draw(t, "number") {
			return number(rapid.Int64().Draw(t, "n"))
		}
		return text(anyText.Draw(t, "s"))
	})
	return rapid.Custom(func(t *rapid.T) ddbtypes.BatchStatementRequest {
		return ddbtypes.BatchStatementRequest{
			Statement:  rapid.SampledFrom([]*string{texts.insert.text, texts.complete.text, aws.String(anyText.Draw(t, "text"))}).Draw(t, "statement"),
			Parameters: rapid.SliceOfN(value, 1, 7).Draw(t, "parameters"),
		}
	})
}

// wireRequest is a request, but for what differs between two of the same.
type wireRequest struct {
	Method, URL string
	Header      http.Header
	Body        any
}

func sameRequest(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, texts *statements, in *dynamodb.BatchExecuteStatementInput) {
	send := func(optFns ...func(*dynamodb.Options)) (s wireRequest) {
		client := (&bed{}).client(roundTripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if !utf8.Valid(body) {
				t.Errorf("body is not UTF-8: %q", body)
			}
			if r.ContentLength != int64(len(body)) {
				t.Errorf("Content-Length %d of %d bytes", r.ContentLength, len(body))
			}
			s = wireRequest{Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone()}
			// The signature covers body and time, which differ.
			for _, h := range []string{"Authorization", "X-Amz-Date", "Amz-Sdk-Invocation-Id", "Content-Length"} {
				if r.Header.Get(h) == "" && h != "Content-Length" {
					t.Errorf("no header %s", h)
				}
				s.Header.Del(h)
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}}, json.Unmarshal(body, &s.Body)
		}))
		if _, err := client.BatchExecuteStatement(context.Background(), in, optFns...); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got, want := send(texts.with(new(room))), send(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant, as the SDK's, %+v", got, want)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
