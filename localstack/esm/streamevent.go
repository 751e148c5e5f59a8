package esm

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// streamRecord is a record of a stream, with its JSON in the event.
type streamRecord struct {
	sequence string
	item     uint64 // hash of the item's key
	at       time.Time
	json     []byte
}

// The record of an event. Its names are those of https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html.
type streamEventRecord struct {
	EventID        string               `json:"eventID"`
	EventName      string               `json:"eventName"`
	EventVersion   string               `json:"eventVersion"`
	EventSource    string               `json:"eventSource"`
	AWSRegion      string               `json:"awsRegion"`
	Change         streamEventChange    `json:"dynamodb"`
	UserIdentity   *streamEventIdentity `json:"userIdentity,omitempty"`
	EventSourceARN string               `json:"eventSourceARN"`
}

type streamEventChange struct {
	ApproximateCreationDateTime int64 // in seconds
	Keys                        map[string]any
	NewImage                    map[string]any `json:",omitempty"`
	OldImage                    map[string]any `json:",omitempty"`
	SequenceNumber              string
	SizeBytes                   int64
	StreamViewType              string
}

type streamEventIdentity struct {
	Type        string `json:"type"`
	PrincipalID string `json:"principalId"`
}

func encodeStreamRecord(r streamtypes.Record, arn string) (streamRecord, error) {
	if r.Dynamodb == nil || aws.ToString(r.Dynamodb.SequenceNumber) == "" {
		return streamRecord{}, fmt.Errorf("esm: record %s has no sequence number", aws.ToString(r.EventID))
	}
	d := r.Dynamodb
	at := aws.ToTime(d.ApproximateCreationDateTime)
	keys := image(d.Keys)
	out := streamEventRecord{
		EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventVersion: aws.ToString(r.EventVersion),
		EventSource: aws.ToString(r.EventSource), AWSRegion: aws.ToString(r.AwsRegion), EventSourceARN: arn,
		Change: streamEventChange{
			ApproximateCreationDateTime: at.Unix(), Keys: keys, NewImage: image(d.NewImage), OldImage: image(d.OldImage),
			SequenceNumber: *d.SequenceNumber, SizeBytes: aws.ToInt64(d.SizeBytes), StreamViewType: string(d.StreamViewType),
		},
	}
	if u := r.UserIdentity; u != nil {
		out.UserIdentity = &streamEventIdentity{aws.ToString(u.Type), aws.ToString(u.PrincipalId)}
	}
	hash := fnv.New64a()
	hash.Write(encodeJSON(keys)) // the members of a map are sorted
	return streamRecord{sequence: *d.SequenceNumber, item: hash.Sum64(), at: at, json: encodeJSON(out)}, nil
}

func image(item map[string]streamtypes.AttributeValue) map[string]any {
	if item == nil {
		return nil
	}
	out := make(map[string]any, len(item))
	for name, v := range item {
		out[name] = attribute(v)
	}
	return out
}

// attribute is a value in DynamoDB's JSON. Bytes become base64.
func attribute(v streamtypes.AttributeValue) any {
	switch v := v.(type) {
	case *streamtypes.AttributeValueMemberS:
		return map[string]string{"S": v.Value}
	case *streamtypes.AttributeValueMemberN:
		return map[string]string{"N": v.Value}
	case *streamtypes.AttributeValueMemberB:
		return map[string][]byte{"B": v.Value}
	case *streamtypes.AttributeValueMemberBOOL:
		return map[string]bool{"BOOL": v.Value}
	case *streamtypes.AttributeValueMemberNULL:
		return map[string]bool{"NULL": v.Value}
	case *streamtypes.AttributeValueMemberSS:
		return map[string][]string{"SS": v.Value}
	case *streamtypes.AttributeValueMemberNS:
		return map[string][]string{"NS": v.Value}
	case *streamtypes.AttributeValueMemberBS:
		return map[string][][]byte{"BS": v.Value}
	case *streamtypes.AttributeValueMemberM:
		return map[string]any{"M": image(v.Value)}
	case *streamtypes.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, e := range v.Value {
			list[i] = attribute(e)
		}
		return map[string]any{"L": list}
	}
	return json.RawMessage("null") // of a type that this SDK does not know
}

func encodeStreamEvent(records []streamRecord) []byte {
	all := make([]record, len(records))
	for i, r := range records {
		all[i].json = r.json
	}
	return encodeEvent(all)
}

func sequences(records []streamRecord) []string {
	all := make([]string, len(records))
	for i, r := range records {
		all[i] = r.sequence
	}
	return all
}
