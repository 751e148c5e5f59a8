package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

func clockChecks() []check {
	return []check{{[]string{"C1", "C2"}, checkClock}}
}

const (
	clockSamples = 5
	clockWarn    = 2 * time.Second
	clockFail    = 4 * time.Minute // AWS refuses signatures at 5 min
	// dateResolution is that of the Date header: the server's clock is in [Date, Date + 1 s) when it writes it.
	dateResolution = time.Second
)

// sample is one exchange with a service, as seen beneath the SDK, which corrects its own clock by what it learns there.
type sample struct {
	sent, received time.Time
	date           time.Time // zero: none
}

// ahead is how far this host's clock is ahead of the server's at least, negative behind. The server wrote Date at some time between
// the request and the response.
func (s sample) ahead() time.Duration {
	least, most := s.sent.Round(0).Sub(s.date.Add(dateResolution)), s.received.Round(0).Sub(s.date)
	return max(least, 0) + min(most, 0)
}

// sampler remembers each exchange of the calls that have it among their options.
type sampler struct{ samples []sample }

func (s *sampler) ID() string { return "sqsonce/doctor/clock" }

func (s *sampler) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	taken := sample{sent: time.Now()}
	out, metadata, err := next.HandleDeserialize(ctx, in)
	taken.received = time.Now()
	if r, ok := out.RawResponse.(*smithyhttp.Response); ok && r != nil && r.Response != nil {
		// A response of a cache has an Age, and an old Date.
		if date, bad := http.ParseTime(r.Header.Get("Date")); bad == nil && r.Header.Get("Age") == "" {
			taken.date = date
		}
		s.samples = append(s.samples, taken)
	}
	return out, metadata, err
}

// add puts the sampler next to the wire.
func (s *sampler) add(stack *middleware.Stack) error {
	return stack.Deserialize.Add(s, middleware.After)
}

func checkClock(ctx context.Context, e *examination) []Finding {
	if e.QueueURL == "" && e.Table == "" {
		return nil
	}
	var s sampler
	service := "SQS"
	switch {
	case e.QueueURL != "" && e.NoQueue == nil:
	case e.Table != "":
		service = "DynamoDB"
	default:
		return []Finding{unseen("C1", e.NoQueue), unseen("C2", e.NoQueue)}
	}
	for range clockSamples {
		before := len(s.samples)
		err := e.exchange(ctx, service, &s)
		if len(s.samples) > before && awserr.Answered(err) {
			continue // a denied call has a Date too
		}
		s.samples = s.samples[:before] // of something else than AWS
		if before == 0 {
			if err == nil {
				err = errors.New("the answer has no HTTP response")
			}
			return []Finding{unseen("C1", err), unseen("C2", err)}
		}
		break
	}
	var trips []time.Duration
	var aheads []time.Duration
	for _, one := range s.samples {
		trips = append(trips, one.received.Sub(one.sent))
		if !one.date.IsZero() {
			aheads = append(aheads, one.ahead())
		}
	}
	slices.Sort(trips)
	latency := Finding{
		ID: "C2", Verdict: OK,
		Text: fmt.Sprintf("%s answers in %s: the median of %d requests", service, trips[len(trips)/2].Round(100*time.Microsecond), len(trips)),
	}
	if len(aheads) == 0 {
		return []Finding{{ID: "C1", Verdict: Unknown, Text: fmt.Sprintf("could not look: the answers of %s have no Date", service)}, latency}
	}
	return []Finding{clockFinding(service, aheads), latency}
}

// clockFinding takes the sample with the least difference: a slow answer makes it uncertain, never greater.
func clockFinding(service string, aheads []time.Duration) Finding {
	off := slices.MinFunc(aheads, func(a, b time.Duration) int { return int(a.Abs() - b.Abs()) })
	f := Finding{ID: "C1", Verdict: OK, Text: fmt.Sprintf("the clock of this host is within a second or two of that of %s", service)}
	if off.Abs() <= clockWarn {
		return f
	}
	side := "ahead of"
	if off < 0 {
		side = "behind"
	}
	f.Verdict = Warn
	f.Text = fmt.Sprintf("the clock of this host is at least %s %s that of %s", off.Abs().Round(100*time.Millisecond), side, service)
	if off.Abs() > clockFail {
		f.Verdict = Fail
		f.Text += ": AWS refuses requests that are signed with a time more than 5m off"
	}
	f.Fix = "synchronize the clock: sudo timedatectl set-ntp true (systemd). On EC2 the time server is 169.254.169.123"
	return f
}

// exchange makes one cheap call.
func (e *examination) exchange(ctx context.Context, service string, s *sampler) error {
	var err error
	switch {
	case service == "SQS" && e.SQS != nil:
		_, err = e.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: &e.QueueURL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
		}, func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, s.add) })
	case service == "DynamoDB" && e.DynamoDB != nil:
		_, err = e.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &e.Table}, func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, s.add) })
	default:
		return errNoClient
	}
	return err
}
