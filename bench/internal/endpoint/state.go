package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// depth is how many messages the queue holds, in flight included.
func (s *server) depth(ctx context.Context) (int, error) {
	out, err := s.local.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(s.place.QueueURL),
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		n, err := strconv.Atoi(out.Attributes[name])
		if err != nil {
			return 0, fmt.Errorf("endpoint: %s: %w", name, err)
		}
		sum += n
	}
	return sum, nil
}

// state is everything that was counted up to now.
func (s *server) state() State {
	st := State{
		Connections: s.connections.Load(), SQSRequests: s.sqsRequests.Load(), DynamoDBRequests: s.dynamodbRequests.Load(),
		WriteUnits: writeUnits(s.dynamodb.Calls()), Left: []Left{},
	}
	for _, m := range s.sqs.Messages(s.place.QueueURL) {
		if m.ReceiveCount > 0 {
			st.Left = append(st.Left, Left{Event: job.Number(m.Body), InFlight: m.InFlight})
		}
	}
	return st
}

// awaitEmpty polls for the end of the work, which has just begun: not often, since the question is a call of the SDK, until
// the end is near.
func (s *server) awaitEmpty(ctx context.Context, with json.RawMessage) (any, error) {
	var limit time.Duration
	if err := json.Unmarshal(with, &limit); err != nil {
		return nil, err
	}
	before, err := job.CPU()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(limit); ; {
		fed := s.fed.Load() // before the depth: what is sent in between is then counted
		n, err := s.depth(ctx)
		now, empty := time.Now(), fed && n == 0
		if err != nil {
			return nil, err
		}
		if empty || now.After(deadline) {
			after, err := job.CPU()
			return Emptied{Empty: empty, At: now, CPU: after - before}, err
		}
		wait := 2 * time.Millisecond
		if n > 1000 {
			wait *= 10
		}
		time.Sleep(wait)
	}
}
