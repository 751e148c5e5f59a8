package dynamostore

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/sqsonce/sqsonce/internal/jsonread/jsonreadtest"
)

// sharedCalls are answers to shared calls.
var sharedCalls = jsonreadtest.Answers{
	Op:      smithy.NewOperationSchema(schemas.BatchExecuteStatement, schemas.BatchExecuteStatementInput, schemas.BatchExecuteStatementOutput),
	Types:   dynamodb.TypeRegistry,
	Out:     func() smithy.Deserializable { return &dynamodb.BatchExecuteStatementOutput{} },
	SDK:     awsjson.New10(schemas.DynamoDB_20120810),
	Own:     protocol{ClientProtocol: awsjson.New10(schemas.DynamoDB_20120810), room: new(room)},
	IsQuick: func(text string) bool { return readWritten([]byte(text), &dynamodb.BatchExecuteStatementOutput{}) },
	Quick:   writtenAnswers, Slow: otherAnswers,
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

func TestWrittenAnswers(t *testing.T) {
	t.Parallel()
	sharedCalls.Test(t)
}

func FuzzWrittenAnswer(f *testing.F) { jsonreadtest.Fuzz(f, sharedCalls) }

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
		if !sharedCalls.IsQuick(string(text)) {
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
	sharedCalls.Benchmark(b, `{"ConsumedCapacity":[{"TableName":"records","CapacityUnits":25.0}],"Responses":[`+
		strings.Repeat(`{"TableName":"records"},`, maxStatements-1)+`{"TableName":"records"}]}`)
}
