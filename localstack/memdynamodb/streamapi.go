package memdynamodb

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimStreams(s.now())
	from := 0
	if in.ExclusiveStartStreamArn != "" {
		start, err := s.findStream(in.ExclusiveStartStreamArn)
		if err != nil {
			return nil, err
		}
		from = slices.Index(s.streams, start) + 1
	}
	out := listStreamsOutput{Streams: []listedStream{}}
	for _, st := range s.streams[from:] {
		if in.TableName != "" && st.table != strings.TrimPrefix(in.TableName, s.tableARN) {
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
	if asked == nil {
		return most, nil
	}
	return *asked, validRange(asked, "limit", 1, most)
}

// stream returns the stream of a request, trimmed, with its table locked.
func (s *Server) stream(arn string) (*stream, error) {
	s.mu.Lock()
	s.trimStreams(s.now())
	st, err := s.findStream(arn)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	st.of.lock()
	st.trim()
	return st, nil
}

// findStream is stream for a caller that holds mu.
func (s *Server) findStream(arn string) (*stream, error) {
	table, _, ok := strings.Cut(nameOf(arn), "/stream/")
	switch {
	case arn == "":
		return nil, required("streamArn")
	case !ok || nameOf(arn) == arn || validName(table) != nil:
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
	st, err := s.stream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	defer st.of.mu.Unlock()
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
