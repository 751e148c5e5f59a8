package lambda

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/sqsonce/sqsonce"
)

// FuzzEvent decodes any JSON as the runtime does. Unless the function returns an error, each record was handled or is named,
// it is named if its handler failed, and nothing else is named.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"Records":[{}]}`, `{"records":null}`, snsEvent, kinesisEvent, dynamoEvent, s3Event, apiEvent, fullRecord,
		records(sqsRecord("1", "aws:sqs", standardARN), sqsRecord("2", "aws:sqs", standardARN), sqsRecord("1", "aws:sqs", standardARN)),
		records(sqsRecord("a", "aws:sqs", fifoARN), sqsRecord("b", "aws:sqs", fifoARN), sqsRecord("c", "aws:sqs", fifoARN)),
	} {
		f.Add([]byte(seed), uint8(0))
		f.Add([]byte(seed), uint8(0b1010))
	}
	f.Fuzz(func(t *testing.T, data []byte, bad uint8) {
		var e events.SQSEvent
		if json.Unmarshal(data, &e) != nil {
			return // the runtime returns an error
		}
		var mu sync.Mutex
		handled, failed := map[string]int{}, map[string]bool{}
		fn := wrap(t, func(_ context.Context, m *sqsonce.Message) error {
			mu.Lock()
			defer mu.Unlock()
			handled[m.ID]++
			if len(handled) < 8 && bad&(1<<len(handled)) != 0 {
				failed[m.ID] = true
				return errTest
			}
			return nil
		})
		r, err := fn(t.Context(), e)
		body, marshalErr := json.Marshal(r)
		if marshalErr != nil || r.BatchItemFailures == nil {
			t.Fatalf("response %s, %v", body, marshalErr)
		}
		if err != nil {
			if len(handled) > 0 {
				t.Fatalf("error %v after %d handlers ran", err, len(handled))
			}
			return
		}
		if len(e.Records) == 0 {
			t.Fatal("no records and no error: a silent success")
		}
		named := map[string]bool{}
		for _, item := range r.BatchItemFailures {
			if item.ItemIdentifier == "" || named[item.ItemIdentifier] {
				t.Fatalf("empty or twice in %s", body)
			}
			named[item.ItemIdentifier] = true
		}
		copies := map[string]int{}
		for _, rec := range e.Records {
			copies[rec.MessageId]++
		}
		for id, n := range copies {
			if done := handled[id] == n && !failed[id]; !done && !named[id] {
				t.Fatalf("%q was handled %d times of %d, failed %t, and is not named in %s", id, handled[id], n, failed[id], body)
			}
			if named[id] && handled[id] == n && !failed[id] {
				t.Fatalf("%q succeeded and is named in %s", id, body)
			}
		}
		for id := range named {
			if copies[id] == 0 {
				t.Fatalf("%q is not in the event", id)
			}
		}
	})
}
