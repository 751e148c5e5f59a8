package sqstest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// publishing is an emulator whose SNS and EventBridge send to a queue of its own. There is no SDK client for the two: that would
// be a dependency for one test.
type publishing struct {
	*testing.T
	endpoint, queueURL, queueARN string
	sqs                          *sqs.Client
}

// What SNS and EventBridge of others send is what Unwrap takes off.
func TestEnvelopesOfEmulators(t *testing.T) {
	t.Parallel()
	for _, e := range []*testserver.Emulator{testserver.LocalStack, testserver.Moto} {
		for name, f := range map[string]func(*publishing){"sns": publishSNS, "eventbridge": publishEventBridge} {
			t.Run(e.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := &publishing{T: t, endpoint: e.Shared(t).URL}
				p.sqs = newClient(p.endpoint, http.DefaultTransport)
				out := must.Get(p.sqs.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("envelopes-" + name)}))(t)
				p.queueURL, p.queueARN = *out.QueueUrl, "arn:aws:sqs:us-east-1:000000000000:envelopes-"+name
				attrs := must.Get(p.sqs.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
					QueueUrl: &p.queueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
				}))(t)
				p.queueARN = attrs.Attributes["QueueArn"]
				f(p)
			})
		}
	}
}

func publishSNS(p *publishing) {
	topic := p.query("sns", url.Values{"Action": {"CreateTopic"}, "Name": {"envelopes"}})
	p.query("sns", url.Values{"Action": {"Subscribe"}, "TopicArn": {topic}, "Protocol": {"sqs"}, "Endpoint": {p.queueARN}})
	id := p.query("sns", url.Values{
		"Action": {"Publish"}, "TopicArn": {topic}, "Subject": {"order"}, "Message": {`{"id":"ord-1","text":"é <&> \" \\"}`},
		"MessageAttributes.entry.1.Name":              {"event-type"},
		"MessageAttributes.entry.1.Value.DataType":    {"String"},
		"MessageAttributes.entry.1.Value.StringValue": {"placed"},
		"MessageAttributes.entry.2.Name":              {"blob"},
		"MessageAttributes.entry.2.Value.DataType":    {"Binary"},
		"MessageAttributes.entry.2.Value.BinaryValue": {"AQI="},
	})
	m := p.unwrapped()
	if want := `{"id":"ord-1","text":"é <&> \" \\"}`; m.Body != want {
		p.Errorf("body: got %s, want %s", m.Body, want)
	}
	want := map[string]sqsonce.Attribute{"event-type": {Type: "String", String: "placed"}, "blob": {Type: "Binary", Binary: []byte{1, 2}}}
	if diff := cmp.Diff(want, m.Attributes); diff != "" {
		p.Errorf("attributes (-want +got):\n%s", diff)
	}
	if key, source, err := m.Key(); key != "sns-message|"+topic+"|"+id || source != sqsonce.KeyFromSNS || err != nil {
		p.Errorf("key %q, %v, %v, want topic %s and message %s", key, source, err, topic, id)
	}
}

func publishEventBridge(p *publishing) {
	p.events("PutRule", `{"Name":"envelopes","EventPattern":"{\"source\":[\"shop\"]}"}`)
	p.events("PutTargets", fmt.Sprintf(`{"Rule":"envelopes","Targets":[{"Id":"1","Arn":%q}]}`, p.queueARN))
	answer := p.events("PutEvents", `{"Entries":[{"Source":"shop","DetailType":"placed","Detail":"{\"id\":\"ord-1\"}"}]}`)
	var put struct{ Entries []struct{ EventId string } }
	if err := json.Unmarshal(answer, &put); err != nil || len(put.Entries) != 1 {
		p.Fatalf("PutEvents: %s, %v", answer, err)
	}
	m := p.unwrapped()
	var detail struct{ ID string }
	if err := json.Unmarshal([]byte(m.Body), &detail); err != nil || detail.ID != "ord-1" || m.Envelope.Type != "placed" {
		p.Errorf("got %+v, %v, want the detail and its type", m, err)
	}
	if key, source, err := m.Key(); key != "eventbridge-event|shop|"+put.Entries[0].EventId || source != sqsonce.KeyFromEventBridge || err != nil {
		p.Errorf("key %q, %v, %v, want event %s", key, source, err, put.Entries[0].EventId)
	}
}

// unwrapped receives a message and returns what the handler behind Unwrap gets.
func (p *publishing) unwrapped() (got *sqsonce.Message) {
	p.Helper()
	out, err := p.sqs.ReceiveMessage(p.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &p.queueURL, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) != 1 {
		p.Fatalf("received %v, %v, want a message", out, err)
	}
	p.Logf("%s", *out.Messages[0].Body)
	h := sqsonce.OpenEnvelope(func(_ context.Context, m *sqsonce.Message) error { got = m; return nil })
	must.Do(p, h(p.Context(), sqsworker.MessageOf(out.Messages[0], p.queueARN)))
	return got
}

// query calls an operation of AWS's query protocol, and returns the one ARN or ID of its answer.
func (p *publishing) query(service string, form url.Values) string {
	p.Helper()
	form.Set("Version", "2010-03-31")
	body := p.post(service, "application/x-www-form-urlencoded", "", form.Encode())
	var text string
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if err != nil {
			p.Fatalf("%s: no result in %s", form.Get("Action"), body)
		}
		if s, ok := token.(xml.StartElement); ok && (s.Name.Local == "TopicArn" || s.Name.Local == "SubscriptionArn" || s.Name.Local == "MessageId") {
			must.Do(p, d.DecodeElement(&text, &s))
			return text
		}
	}
}

func (p *publishing) events(op, body string) []byte {
	p.Helper()
	return p.post("events", "application/x-amz-json-1.1", "AWSEvents."+op, body)
}

func (p *publishing) post(service, contentType, target, body string) []byte {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.endpoint+"/", strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	if target != "" {
		r.Header.Set("X-Amz-Target", target)
	}
	// Emulators find the service by the scope of the signature, which they do not check.
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20261123/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	resp := must.Get(http.DefaultClient.Do(r))(p)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.Fatalf("%s %s: status %d, %s, %v", service, target, resp.StatusCode, answer, err)
	}
	return answer
}
