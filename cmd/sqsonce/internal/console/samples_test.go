package console

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/queues"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/testworld"
	"github.com/sqsonce/sqsonce/internal/must"
)

// switched is an SQS that does not answer while it is off.
type switched struct {
	off atomic.Bool
	to  interface {
		Do(*http.Request) (*http.Response, error)
	}
}

func (s *switched) Do(r *http.Request) (*http.Response, error) {
	if s.off.Load() {
		return away{}.Do(r)
	}
	return s.to.Do(r)
}

func (f *fixture) send(queue string, n int) {
	f.Helper()
	for range n {
		testworld.Send(f, f.stack, queue, "g", "{}")
	}
}

// start samples in the background.
func (f *fixture) start() {
	f.background(f.sampler.run)
	f.Cleanup(f.Close)
}

func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &switched{}
		f := newFixture(t, func(o *Options) {
			wire.to = o.SQS.Options().HTTPClient
			o.SQS = sqs.New(o.SQS.Options(), func(o *sqs.Options) { o.HTTPClient = wire })
		})
		f.send("orders", 3)
		f.send("orders-dlq", 2)
		f.start()
		time.Sleep(time.Second)
		f.has("/", ">3</td>", "visible: 3", "visible: 2", "orders-dlq has dead letters: about 2", "watches no workers")
		f.has("/dlq/orders", "about 2 messages, as of")
		time.Sleep(2*time.Hour - time.Second)
		synctest.Wait()
		samples := f.sampler.state("orders").samples
		if len(samples) != 720 || cap(samples) > 2*720 {
			t.Errorf("after two hours: %d samples, room for %d", len(samples), cap(samples))
		}
		first, last := samples[0], samples[len(samples)-1]
		if d := last.at.Sub(first.at); d != sampleKept-sampleEvery || time.Since(last.at) > sampleEvery {
			t.Errorf("they are of %s, the last one %s old", d, time.Since(last.at))
		}
		if v := last.values; v[visibleNow] != 3 || v[inFlight] != 0 || v[delayed] != 0 || v[deadVisible] != 2 || v[deadInFlight] != 0 || !math.IsNaN(v[age]) || !math.IsNaN(v[done]) {
			t.Errorf("got %v", v)
		}
		if n := f.called()["ReceiveMessage"]; n != 0 {
			t.Errorf("samples received %d times", n)
		}

		wire.off.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		state := f.sampler.state("orders")
		if v := state.samples[len(state.samples)-1].values; !math.IsNaN(v[visibleNow]) || state.Err == nil || time.Since(state.Since) > time.Minute {
			t.Errorf("while SQS is away: %v, %v since %s", v, state.Err, state.Since)
		}
		begun := time.Now()
		f.has("/", "orders: not read since "+clock(state.Since), "orders: sqs does not answer", "check the network", ">3</td>", "visible: not known", clock(state.At))
		if !time.Now().Equal(begun) {
			t.Error("the page waited for SQS")
		}
		wire.off.Store(false)
		time.Sleep(2 * sampleEvery)
		synctest.Wait()
		if body := f.has("/"); strings.Contains(body, "not read since") {
			t.Errorf("SQS is back, and it is still said to be away:\n%s", body)
		}
	})
}

// The first page of a console whose AWS does not answer says so, at once.
func TestAwayFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *Options) {
			o.SQS = sqs.New(o.SQS.Options(), func(o *sqs.Options) { o.HTTPClient = away{} })
		})
		f.start()
		synctest.Wait()
		begun := time.Now()
		f.has("/", "not yet", "unknown: SQS has not answered yet", "Not known yet: SQS")
		time.Sleep(time.Minute)
		synctest.Wait()
		f.has("/", "not read since", "not yet")
		if n := len(f.sampler.state("orders").samples); n < 11 || n > 14 {
			t.Errorf("%d samples in a minute: one waits for the other", n)
		}
		if time.Since(begun) != time.Minute {
			t.Error("a page waited for SQS")
		}
	})
}

// A panic of what is read ends neither the process nor the samples.
func TestSampleThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		f := newFixture(t, func(o *Options) {
			to := o.SQS.Options().HTTPClient
			o.SQS = sqs.New(o.SQS.Options(), func(o *sqs.Options) {
				o.HTTPClient = clientFunc(func(r *http.Request) (*http.Response, error) {
					if n.Add(1) <= 3 {
						panic("a broken transport")
					}
					return to.Do(r)
				})
			})
		})
		f.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if state := f.sampler.state("orders"); time.Since(state.At) > sampleEvery || !strings.Contains(f.logs.String(), "a broken transport") {
			t.Errorf("last read at %s; log: %s", state.At, f.logs)
		}
	})
}

type clientFunc func(*http.Request) (*http.Response, error)

func (f clientFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

// metrics is a CloudWatch client that answers with what f returns.
func metrics(f func(context.Context, *cloudwatch.GetMetricDataInput) (*cloudwatch.GetMetricDataOutput, error)) *cloudwatch.Client {
	return cloudwatch.New(cloudwatch.Options{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("fake", func(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, _ middleware.Metadata, err error) {
			out.Result, err = f(ctx, in.Parameters.(*cloudwatch.GetMetricDataInput))
			return out, middleware.Metadata{}, err
		}), middleware.Before)
	}}})
}

func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var fails atomic.Bool
		f := newFixture(t, func(o *Options) {
			o.CloudWatch = metrics(func(_ context.Context, in *cloudwatch.GetMetricDataInput) (*cloudwatch.GetMetricDataOutput, error) {
				calls.Add(1)
				if fails.Load() {
					return nil, errors.New("not authorized to perform: cloudwatch:GetMetricData")
				}
				out := &cloudwatch.GetMetricDataOutput{}
				for _, q := range in.MetricDataQueries {
					metric := q.MetricStat.Metric
					seconds := map[string]float64{
						"ApproximateAgeOfOldestMessage orders": 90, "ApproximateAgeOfOldestMessage orders-dlq": 3600,
						"ApproximateNumberOfNoisyGroups orders": 2, "ApproximateAgeOfOldestMessageInQuietGroups orders": 4,
					}[*metric.MetricName+" "+*metric.Dimensions[0].Value]
					r := types.MetricDataResult{Id: q.Id}
					if seconds > 0 { // a queue that nobody uses has none
						r.Values, r.Timestamps = []float64{seconds, 1e6}, []time.Time{time.Now().Add(-2 * time.Minute), time.Now().Add(-3 * time.Minute)}
					}
					out.MetricDataResults = append(out.MetricDataResults, r)
				}
				return out, nil
			})
		})
		f.send("orders-dlq", 1)
		f.start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := calls.Load(); n < 10 || n > 11 {
			t.Errorf("CloudWatch was asked %d times in ten minutes", n)
		}
		state := f.sampler.state("orders")
		if a := state.Ages; a.Main.Age != 90*time.Second || a.Dead.Age != time.Hour || a.Shared || a.SharedErr != nil || f.sampler.state("jobs.fifo").Ages.Main != (queues.Age{}) {
			t.Errorf("got %+v", a)
		}
		if v := state.samples[len(state.samples)-1].values[age]; v != 90 {
			t.Errorf("the sample has an age of %g", v)
		}
		// Both queues keep messages for four days, so one that waited there as long may go at any time.
		f.has("/", "1m 30s, at ", "may be lost at any time", "age: 1m 30s", "2 noisy message groups at ", "whose oldest message was 4s old at ")
		fails.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		f.has("/?queue=orders", "CloudWatch gives no ages", "not authorized to perform", "1m 30s, at ", "age: not known")
	})
}

func TestSharedDeadLetterQueue(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Queues[0].DLQURL = o.Queues[1].DLQURL })
	policy := `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dlq","maxReceiveCount":"3"}`
	must.Get(f.stack.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("others"), Attributes: map[string]string{"RedrivePolicy": policy}}))(t)
	q := f.opts.Queues[0]
	for url, want := range map[string]bool{f.stack.QueueURL["orders-dlq"]: true, f.stack.QueueURL["jobs-dlq.fifo"]: false, "": false} {
		q.DLQURL = url
		if got, err := f.sampler.isShared(t.Context(), q); got != want || err != nil {
			t.Errorf("%s: got %t, %v", url, got, err)
		}
	}
	q.DLQURL = "http://sqs.us-east-1.amazonaws.com/000000000000/none"
	if _, err := f.sampler.isShared(t.Context(), q); err == nil {
		t.Error("a queue that is missing is known not to be shared")
	}
}
