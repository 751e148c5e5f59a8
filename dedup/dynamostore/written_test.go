package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// readAnswer reads an answer to a shared call through p.
func readAnswer(p smithyhttp.ClientProtocol, text string) (*dynamodb.BatchExecuteStatementOutput, error) {
	out := &dynamodb.BatchExecuteStatementOutput{}
	op := smithy.NewOperationSchema(schemas.BatchExecuteStatement, schemas.BatchExecuteStatementInput, schemas.BatchExecuteStatementOutput)
	resp := &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}}
	return out, p.DeserializeResponse(context.Background(), op, dynamodb.TypeRegistry, resp, out)
}

// sameAsSDK wants of the store's protocol what the SDK's own reads.
func sameAsSDK(t testing.TB, text string) {
	t.Helper()
	sdk := awsjson.New10(schemas.DynamoDB_20120810)
	want, wantErr := readAnswer(sdk, text)
	got, err := readAnswer(protocol{ClientProtocol: sdk, room: new(room)}, text)
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngot  %+v, %v\nwant %+v, %v", text, got, err, want, wantErr)
	}
}

func isWritten(text string) bool {
	_, _, ok := readWritten([]byte(text))
	return ok
}

var writtenAnswers = []string{
	`{}`,
	`{"Responses":[]}`,
	`{"Responses":[{}]}`,
	`{"Responses":[{"TableName":"records"},{"TableName":"records"}],"ConsumedCapacity":[{"TableName":"records","CapacityUnits":2.0}]}`,
	`{ "ConsumedCapacity" : [ { "CapacityUnits" : 25 , "TableName" : "a" } , { "CapacityUnits" : 0.5 , "TableName" : "b" } ] , "Responses" : [ {} ] }`,
	`{"Responses":[{"TableName":"a","TableName":"b"},{"TableName":"b"},{"TableName":"a\tb"}]}`,
	`{"Responses":[` + strings.Repeat(`{},`, maxStatements) + `{}]}`,
}

var otherAnswers = []string{
	``, `null`, `[]`, `{"Responses":null}`, `{"Responses":[null]}`, `{"Responses":[1]}`, `{"Responses":{}}`, `{"Responses":[{"New":"a"}]}`, `{"Responses":[{}],"Responses":[]}`,
	`{"Responses":[{"Error":{"Code":"DuplicateItem","Message":"Duplicate primary key exists in table"}}]}`,
	`{"Responses":[{"TableName":"a","Item":{"id":{"S":"b"}}}]}`, `{"Responses":[{"TableName":null}]}`, `{"Responses":[{"TableName":1}]}`,
	`{"ConsumedCapacity":[{"TableName":"a","CapacityUnits":1.0,"Table":{"CapacityUnits":1.0}}]}`, `{"ConsumedCapacity":[],"ConsumedCapacity":[]}`,
	`{"ConsumedCapacity":[{"CapacityUnits":"Infinity"}]}`, `{"ConsumedCapacity":[{"CapacityUnits":-1}]}`, `{"ConsumedCapacity":[{"CapacityUnits":1e3}]}`,
	`{"ConsumedCapacity":[{"CapacityUnits":01}]}`, `{"ConsumedCapacity":[{"CapacityUnits":1.}]}`, `{"ConsumedCapacity":[{"CapacityUnits":.5}]}`,
	`{"ConsumedCapacity":[{"CapacityUnits":1.2.3}]}`, `{"ConsumedCapacity":[{"CapacityUnits":}]}`, `{"New":1}`, `{"Responses":[{}]`, `{"Responses":[{}]}}`,
}

// TestWrittenAnswers: whichever of the two reads an answer, it is the same.
func TestWrittenAnswers(t *testing.T) {
	t.Parallel()
	for _, text := range writtenAnswers {
		sameAsSDK(t, text)
		if !isWritten(text) {
			t.Errorf("left to the SDK: %s", text)
		}
	}
	for _, text := range otherAnswers {
		sameAsSDK(t, text)
		if isWritten(text) {
			t.Errorf("not left to the SDK: %s", text)
		}
	}
}

func FuzzWrittenAnswer(f *testing.F) {
	for _, text := range append(writtenAnswers, otherAnswers...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if isWritten(text) {
			sameAsSDK(t, text)
		}
	})
}

// TestSharedCallsAreReadQuickly: what a store's calls are answered is what is read quickly.
func TestSharedCallsAreReadQuickly(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var answers atomic.Int64
	s, err := New(b.client(roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := b.srv.RoundTrip(r)
		if err != nil || !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchExecuteStatement") {
			return resp, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(text))
		answers.Add(1)
		if !isWritten(string(text)) {
			t.Errorf("left to the SDK: %s", text)
		}
		return resp, err
	})), testTable, func(o *Options) { o.Linger = time.Second })
	if err != nil {
		t.Fatal(err)
	}
	s.at.enter("somebody else", time.Now().Add(time.Hour))
	leases, errs := acquireAll(t.Context(), s, crowd(maxStatements))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, l := range leases {
		wg.Go(func() { b.complete(s, l) })
	}
	wg.Wait()
	if answers.Load() != 2 {
		t.Errorf("%d shared calls, want 2", answers.Load())
	}
}

func BenchmarkWrittenAnswer(b *testing.B) {
	text := `{"ConsumedCapacity":[{"TableName":"records","CapacityUnits":25.0}],"Responses":[` +
		strings.Repeat(`{"TableName":"records"},`, maxStatements-1) + `{"TableName":"records"}]}`
	sdk := awsjson.New10(schemas.DynamoDB_20120810)
	for name, p := range map[string]smithyhttp.ClientProtocol{"sdk": sdk, "dynamostore": protocol{ClientProtocol: sdk, room: new(room)}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readAnswer(p, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
