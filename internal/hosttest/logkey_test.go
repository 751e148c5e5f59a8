package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/memstore"
)

// A host's line about a handler has the key of dedup's lines, also where that is from an envelope: without the consumer.
func TestLinesOfAnEventHaveOneKey(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"CloudEvent in SNS": inSNS(cloudEventBody), "EventBridge": eventBridgeBody, "none": "{}"} {
		for _, host := range []string{worker, function} {
			must.RunParallel(t, name+"/"+host, func(t *testing.T) {
				w := newFixture(t, setup{visibility: 30 * time.Second, maxReceives: 3, quiet: true})
				var book bytes.Buffer
				w.log = slog.New(slog.NewJSONHandler(&book, nil))
				once, err := dedup.New(memstore.New(), consumer)
				if err != nil {
					t.Fatal(err)
				}
				var record string
				stop := w.start(host, sqsonce.OpenEnvelope(once.Handler(func(_ context.Context, m *sqsonce.Message) error {
					if record, err = once.Key(m); err != nil {
						return err
					}
					if m.ReceiveCount == 1 {
						return errCard
					}
					return sqsonce.Reject(errCard)
				})))
				must.Get(w.admin.sqs.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &w.url, MessageBody: aws.String(body)}))(t)
				time.Sleep(time.Hour)
				stop()
				seen := map[string]bool{"handler failed": false, "message sent to the dead-letter queue": false}
				for d := json.NewDecoder(&book); d.More(); {
					var line struct{ Msg, Key string }
					must.Do(t, d.Decode(&line))
					_, text, _ := strings.Cut(line.Msg, ": ")
					if _, ok := seen[text]; !ok {
						continue
					}
					seen[text] = true
					if consumer+"#"+line.Key != record {
						t.Errorf("%s: key %q, want that of the record %q", line.Msg, line.Key, record)
					}
				}
				for text, ok := range seen {
					if !ok {
						t.Errorf("no line %q", text)
					}
				}
			})
		}
	}
}
