package memdynamodb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

type getShardIteratorInput struct {
	StreamArn, ShardIteratorType string
	ShardID                      string `json:"ShardId"`
	SequenceNumber               string
}

// iterator is the meaning of a ShardIterator: the next sequence number to read.
type iterator struct {
	Stream string
	Shard  string
	Next   uint64
	Issued time.Time
}

// iteratorLife is how long a ShardIterator can be used.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html
const iteratorLife = 15 * time.Minute

func (it iterator) String() string {
	raw, _ := json.Marshal(it) // has no values that JSON lacks
	return it.Stream + "|1|" + base64.StdEncoding.EncodeToString(raw)
}

func parseIterator(text string) (it iterator, err error) {
	parts := strings.SplitN(text, "|", 3)
	if len(parts) == 3 {
		var raw []byte
		if raw, err = base64.StdEncoding.DecodeString(parts[2]); err == nil {
			err = json.Unmarshal(raw, &it)
		}
	}
	if len(parts) != 3 || err != nil || it.Stream != parts[0] {
		return it, validation("Invalid ShardIterator")
	}
	return it, nil
}

func (in *getShardIteratorInput) validate() error {
	bySequence := strings.HasSuffix(in.ShardIteratorType, "_SEQUENCE_NUMBER")
	switch {
	case in.ShardID == "":
		return required("shardId")
	case in.ShardIteratorType == "":
		return required("shardIteratorType")
	case !slices.Contains([]string{"TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"}, in.ShardIteratorType):
		return constraint(in.ShardIteratorType, "shardIteratorType", "Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]")
	case bySequence && in.SequenceNumber == "":
		return validation("SequenceNumber must be specified for ShardIteratorType %s", in.ShardIteratorType)
	case !bySequence && in.SequenceNumber != "":
		return validation("SequenceNumber must not be specified for ShardIteratorType %s", in.ShardIteratorType)
	}
	return validShardID(in.ShardID, "shardId")
}

func (s *Server) getShardIterator(_ *call, in *getShardIteratorInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	defer st.of.mu.Unlock()
	sh, err := st.shard(in.ShardID)
	if err != nil {
		return nil, err
	}
	it := iterator{Stream: st.arn, Shard: sh.id, Issued: st.of.at}
	switch in.ShardIteratorType {
	case "TRIM_HORIZON":
		it.Next = max(sh.start, sh.trimmed+1)
	case "LATEST":
		it.Next = s.sequence.Load() + 1
	default:
		if it.Next, err = sh.sequence(in.SequenceNumber, s.sequence.Load()); err != nil {
			return nil, err
		}
		if in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
			it.Next++
		}
	}
	return map[string]any{"ShardIterator": it.String()}, nil
}

func (st *stream) shard(id string) (*shard, error) {
	at := slices.IndexFunc(st.shards, func(sh *shard) bool { return sh.id == id })
	if at < 0 {
		return nil, awsjson.Invalid("ResourceNotFoundException", "Requested resource not found: Shard does not exist")
	}
	return st.shards[at], nil
}

// sequence reads a sequence number that must be one of the shard, and not trimmed. newest is the newest of all streams.
func (sh *shard) sequence(text string, newest uint64) (uint64, error) {
	n, err := sequenceOf(text)
	if err != nil {
		return 0, err
	}
	if sh.end != 0 {
		newest = sh.end
	}
	switch {
	case n < sh.start || n > newest:
		return 0, invalidSequence(text)
	case n <= sh.trimmed:
		return 0, trimmedAway()
	}
	return n, nil
}

func trimmedAway() error {
	return awsjson.Invalid("TrimmedDataAccessException", "The operation attempted to read past the oldest stream record in a shard")
}

type getRecordsInput struct {
	ShardIterator string
	Limit         *int
}

type getRecordsOutput struct {
	Records           []recordOutput
	NextShardIterator string `json:",omitempty"`
}

type recordOutput struct {
	AwsRegion    string        `json:"awsRegion"`
	Dynamodb     changedOutput `json:"dynamodb"`
	EventID      string        `json:"eventID"`
	EventName    string        `json:"eventName"`
	EventSource  string        `json:"eventSource"`
	EventVersion string        `json:"eventVersion"`
	UserIdentity *identity     `json:"userIdentity,omitempty"`
}

type changedOutput struct {
	ApproximateCreationDateTime int64 // in seconds
	Keys                        attr.Map
	NewImage                    *attr.Map `json:",omitempty"`
	OldImage                    *attr.Map `json:",omitempty"`
	SequenceNumber              string
	SizeBytes                   int
	StreamViewType              string
}

const (
	maxRecords      = 1000
	maxRecordsBytes = 1 << 20
)

func (s *Server) getRecords(c *call, in *getRecordsInput) (any, error) {
	limit, err := pageLimit(in.Limit, maxRecords)
	if err != nil {
		return nil, err
	}
	if in.ShardIterator == "" {
		return nil, required("shardIterator")
	}
	it, err := parseIterator(in.ShardIterator)
	if err != nil {
		return nil, err
	}
	st, err := s.stream(it.Stream)
	if err != nil {
		return nil, err
	}
	defer st.of.mu.Unlock()
	if st.of.at.Sub(it.Issued) >= iteratorLife {
		return nil, awsjson.Invalid("ExpiredIteratorException", "The shard iterator has expired and can no longer be used to retrieve stream records")
	}
	sh, err := st.shard(it.Shard)
	if err != nil {
		return nil, err
	}
	if it.Next <= sh.trimmed {
		return nil, trimmedAway()
	}
	out := getRecordsOutput{Records: []recordOutput{}}
	from := sort.Search(len(sh.records), func(i int) bool { return sh.records[i].sequence >= it.Next })
	left, size := sh.records[from:], 0
	for len(left) > 0 && len(out.Records) < limit {
		r := &left[0]
		if size += r.size(); size > maxRecordsBytes { // not the first: two images of 400 KB are less
			break
		}
		out.Records = append(out.Records, r.output(st.view, s.region))
		it.Next, left = r.sequence+1, left[1:]
	}
	c.cost.Entries = len(out.Records)
	if sh.end == 0 || len(left) > 0 { // a closed shard that was read to its end has no next iterator
		it.Issued = st.of.at
		out.NextShardIterator = it.String()
	}
	return out, nil
}

func (r *streamRecord) output(view, region string) recordOutput {
	out := recordOutput{
		AwsRegion: region, EventID: fmt.Sprintf("%032x", r.sequence), EventName: r.name, EventSource: "aws:dynamodb", EventVersion: "1.1",
		UserIdentity: r.by,
		Dynamodb: changedOutput{
			ApproximateCreationDateTime: r.at.Unix(), Keys: r.keys, SequenceNumber: sequenceText(r.sequence), SizeBytes: r.size(), StreamViewType: view,
		},
	}
	if r.old != nil {
		out.Dynamodb.OldImage = &r.old
	}
	if r.new != nil {
		out.Dynamodb.NewImage = &r.new
	}
	return out
}
