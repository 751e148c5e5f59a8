package memdynamodb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// The operations of DynamoDB's streams.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations_Amazon_DynamoDB_Streams.html

type listStreamsInput struct {
	TableName               string
	ExclusiveStartStreamArn string
	Limit                   *int
}

type listedStream struct{ StreamArn, StreamLabel, TableName string }

type listStreamsOutput struct {
	Streams                []listedStream
	LastEvaluatedStreamArn string `json:",omitempty"`
}

func (s *Server) listStreams(_ *call, in *listStreamsInput) (any, error) {
	limit, err := pageLimit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	if in.TableName != "" {
		if err := validTable(in.TableName); err != nil {
			return nil, err
		}
	}
	s.lock()
	defer s.mu.Unlock()
	s.trimStreams()
	from := 0
	if in.ExclusiveStartStreamArn != "" {
		start, err := s.stream(in.ExclusiveStartStreamArn)
		if err != nil {
			return nil, err
		}
		from = slices.Index(s.streams, start) + 1
	}
	out := listStreamsOutput{Streams: []listedStream{}}
	for _, st := range s.streams[from:] {
		if in.TableName != "" && st.table != strings.TrimPrefix(in.TableName, arnPrefix) {
			continue
		}
		out.Streams = append(out.Streams, listedStream{st.arn, st.label, st.table})
		if len(out.Streams) == limit {
			out.LastEvaluatedStreamArn = st.arn // also if none follows, as in AWS's other lists
			break
		}
	}
	return out, nil
}

// pageLimit checks a Limit, and returns most where there is none.
func pageLimit(asked *int, most int) (int, error) {
	switch {
	case asked == nil:
		return most, nil
	case *asked < 1:
		return 0, constraint(*asked, "limit", "Member must have value greater than or equal to 1")
	case *asked > most:
		return 0, constraint(*asked, "limit", fmt.Sprintf("Member must have value less than or equal to %d", most))
	}
	return *asked, nil
}

// stream returns the stream of a request. The caller holds mu and has trimmed.
func (s *Server) stream(arn string) (*stream, error) {
	table, _, ok := strings.Cut(strings.TrimPrefix(arn, arnPrefix), "/stream/")
	switch {
	case arn == "":
		return nil, required("streamArn")
	case !ok || !strings.HasPrefix(arn, arnPrefix) || validName(table) != nil:
		return nil, validation("Invalid StreamArn: %s", arn)
	}
	at := slices.IndexFunc(s.streams, func(st *stream) bool { return st.arn == arn })
	if at < 0 {
		return nil, awsjson.Invalid("ResourceNotFoundException", "Requested resource not found: Stream: "+arn+" not found")
	}
	return s.streams[at], nil
}

type describeStreamInput struct {
	StreamArn             string
	ExclusiveStartShardID string `json:"ExclusiveStartShardId"`
	Limit                 *int
}

type streamDescription struct {
	StreamArn, StreamLabel, StreamStatus, StreamViewType, TableName string
	CreationRequestDateTime                                         float64
	KeySchema                                                       []keyElement
	Shards                                                          []shardDescription
	LastEvaluatedShardID                                            string `json:"LastEvaluatedShardId,omitempty"`
}

type shardDescription struct {
	ShardID             string `json:"ShardId"`
	ParentShardID       string `json:"ParentShardId,omitempty"`
	SequenceNumberRange sequenceRange
}

type sequenceRange struct {
	StartingSequenceNumber string
	EndingSequenceNumber   string `json:",omitempty"`
}

func (s *Server) describeStream(_ *call, in *describeStreamInput) (any, error) {
	limit, err := pageLimit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	if id := in.ExclusiveStartShardID; id != "" {
		if err := validShardID(id, "exclusiveStartShardId"); err != nil {
			return nil, err
		}
	}
	s.lock()
	defer s.mu.Unlock()
	s.trimStreams()
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	out := streamDescription{
		StreamArn: st.arn, StreamLabel: st.label, StreamStatus: "ENABLED", StreamViewType: st.view, TableName: st.table,
		CreationRequestDateTime: seconds(st.created), KeySchema: st.keys, Shards: []shardDescription{},
	}
	if !st.disabled.IsZero() {
		out.StreamStatus = "DISABLED"
	}
	for _, sh := range st.shards {
		if sh.id <= in.ExclusiveStartShardID {
			continue
		}
		if len(out.Shards) == limit {
			out.LastEvaluatedShardID = out.Shards[limit-1].ShardID
			break
		}
		d := shardDescription{ShardID: sh.id, ParentShardID: sh.parent, SequenceNumberRange: sequenceRange{StartingSequenceNumber: sequenceText(sh.start)}}
		if sh.end != 0 {
			d.SequenceNumberRange.EndingSequenceNumber = sequenceText(sh.end)
		}
		out.Shards = append(out.Shards, d)
	}
	return map[string]any{"StreamDescription": out}, nil
}

// sequenceBase makes every sequence number as long as AWS says that the shortest is, 21 digits.
const sequenceBase = "1"

func sequenceText(n uint64) string { return sequenceBase + fmt.Sprintf("%020d", n) }

// sequenceOf reads a sequence number of a request.
func sequenceOf(text string) (uint64, error) {
	if len(text) < 21 || len(text) > 40 || strings.Trim(text, "0123456789") != "" {
		return 0, constraint(text, "sequenceNumber", "Member must have 21 to 40 digits")
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, sequenceBase), 10, 64)
	if err != nil || len(text) != 21 || !strings.HasPrefix(text, sequenceBase) {
		return 0, invalidSequence(text)
	}
	return n, nil
}

func invalidSequence(text string) error {
	return validation("Invalid SequenceNumber: %s is not in the shard", text)
}

func validShardID(id, member string) error {
	if len(id) < 28 || len(id) > 65 {
		return constraint(id, member, "Member must have length between 28 and 65")
	}
	return nil
}

type getShardIteratorInput struct {
	StreamArn, ShardIteratorType string
	ShardID                      string `json:"ShardId"`
	SequenceNumber               string
}

// iterator is what a ShardIterator stands for: the next sequence number to read.
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
	s.lock()
	defer s.mu.Unlock()
	s.trimStreams()
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	sh, err := st.shard(in.ShardID)
	if err != nil {
		return nil, err
	}
	it := iterator{Stream: st.arn, Shard: sh.id, Issued: s.at}
	switch in.ShardIteratorType {
	case "TRIM_HORIZON":
		it.Next = max(sh.start, sh.trimmed+1)
	case "LATEST":
		it.Next = s.sequence + 1
	default:
		if it.Next, err = sh.sequence(in.SequenceNumber, s.sequence); err != nil {
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
	s.lock()
	defer s.mu.Unlock()
	s.trimStreams()
	st, err := s.stream(it.Stream)
	if err != nil {
		return nil, err
	}
	if s.at.Sub(it.Issued) >= iteratorLife {
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
		out.Records = append(out.Records, r.output(st.view))
		it.Next, left = r.sequence+1, left[1:]
	}
	c.cost.Entries = len(out.Records)
	if sh.end == 0 || len(left) > 0 { // a closed shard that was read to its end has no next iterator
		it.Issued = s.at
		out.NextShardIterator = it.String()
	}
	return out, nil
}

func (r *streamRecord) output(view string) recordOutput {
	out := recordOutput{
		AwsRegion: "us-east-1", EventID: fmt.Sprintf("%032x", r.sequence), EventName: r.name, EventSource: "aws:dynamodb", EventVersion: "1.1",
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
