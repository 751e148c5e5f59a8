package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/fleet"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// workersOf answers /stats as the workers of a world do.
type workersOf struct{ w *world }

func (f workersOf) RoundTrip(req *http.Request) (*http.Response, error) {
	report := f.w.workers[req.URL.Host]
	switch {
	case report == nil && f.w.handler != nil:
		rec := httptest.NewRecorder()
		f.w.handler.ServeHTTP(rec, req)
		return rec.Result(), nil
	case report == nil:
		return nil, errors.New("connection refused")
	}
	said := report()
	if said.V == 0 {
		return nil, errors.New("connection refused")
	}
	body, err := json.Marshal(said)
	if err != nil || req.URL.Path != "/stats" {
		return nil, fmt.Errorf("%s: %v", req.URL, err)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// working returns a process whose worker of a queue has done so many messages a second since it began.
func (w *world) working(name, queue string, perSecond float64) func() statusreport.Report {
	started := time.Now()
	return func() statusreport.Report {
		now := time.Now()
		done := perSecond * now.Sub(started).Seconds()
		url := w.stack.QueueURL[queue]
		if w.noURLs {
			url = ""
		}
		return statusreport.Report{V: 1, Name: name, Version: "v1.2.0", Started: started, Now: now, Workers: []statusreport.Worker{{
			Queue: queue, URL: url, State: "running", Intake: "open",
			Stats: statusreport.Stats{
				fleet.Received: done + 4, fleet.Done: done, fleet.Failed: 0, fleet.RunningNow: 3, fleet.Concurrency: 10, fleet.InFlight: 4,
				fleet.Held: 1, fleet.OldestRunning: 72.4, fleet.Stuck: 0, fleet.LeasesLost: 2,
			},
		}}}
	}
}

// cloudWatch has the ages of queues. It has no server: GetMetricData ends before the request is made.
func (w *world) cloudWatch() *cloudwatch.Client {
	answer := func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, m middleware.Metadata, err error) {
		get, ok := in.Parameters.(*cloudwatch.GetMetricDataInput)
		if !ok {
			return out, m, fmt.Errorf("CloudWatch was called with %T", in.Parameters)
		}
		if w.asked++; w.ages == nil {
			return out, m, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not authorized"}
		}
		made.Lock()
		made.calls[w.calls.policy]["cloudwatch:GetMetricData *"] = true
		made.Unlock()
		result := &cloudwatch.GetMetricDataOutput{}
		for _, q := range get.MetricDataQueries {
			r := cwtypes.MetricDataResult{Id: q.Id, StatusCode: cwtypes.StatusCodeComplete}
			metric := q.MetricStat.Metric
			values := map[string]map[string]float64{
				"ApproximateAgeOfOldestMessage": w.ages, "ApproximateNumberOfNoisyGroups": w.noisy, "ApproximateAgeOfOldestMessageInQuietGroups": w.quiet,
			}[aws.ToString(metric.MetricName)]
			if age, ok := values[aws.ToString(metric.Dimensions[0].Value)]; ok {
				r.Values, r.Timestamps = []float64{age, 1}, []time.Time{get.EndTime.Add(-time.Minute), get.EndTime.Add(-2 * time.Minute)}
				if get.ScanBy != cwtypes.ScanByTimestampDescending {
					slices.Reverse(r.Values)
				}
			}
			result.MetricDataResults = append(result.MetricDataResults, r)
		}
		out.Result = result
		return out, m, nil
	}
	return cloudwatch.New(cloudwatch.Options{Region: "us-east-1", APIOptions: []func(*middleware.Stack) error{func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("answer", answer), middleware.Before)
	}}})
}
