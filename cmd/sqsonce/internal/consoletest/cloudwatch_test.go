package consoletest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

// The ages of the oldest messages that the fake of CloudWatch knows.
const (
	oldest     = 42 * time.Second
	oldestDead = 9 * time.Hour
)

// cloudWatch starts a fake that answers GetMetricData with the age of the oldest message, and returns its URL. All else it refuses:
// the doctor says then that it could not look.
func (w *world) cloudWatch() (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
		rw.Header().Set("Content-Type", "application/cbor")
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/GetMetricData") {
			rw.WriteHeader(http.StatusForbidden)
			_, _ = rw.Write(cbor.Encode(cbor.Map{"__type": cbor.String("AccessDenied"), "message": cbor.String("not allowed")}))
			return
		}
		_, _ = rw.Write(cbor.Encode(cbor.Map{"MetricDataResults": results(body)})) // the client has gone
	}))
	w.Cleanup(s.Close)
	return s.URL
}

func results(request []byte) cbor.List {
	value, err := cbor.Decode(request)
	if err != nil {
		panic(err)
	}
	minute := cbor.Tag{ID: 1, Value: cbor.Float64(time.Now().Truncate(time.Minute).Unix())}
	var all cbor.List
	for _, q := range value.(cbor.Map)["MetricDataQueries"].(cbor.List) {
		query := q.(cbor.Map)
		age := oldest
		metric := query["MetricStat"].(cbor.Map)["Metric"].(cbor.Map)
		if metric["MetricName"] != cbor.String("ApproximateAgeOfOldestMessage") {
			continue // a queue without noisy groups
		}
		dimensions := metric["Dimensions"].(cbor.List)
		if strings.Contains(string(dimensions[0].(cbor.Map)["Value"].(cbor.String)), "-dlq") {
			age = oldestDead
		}
		all = append(all, cbor.Map{
			"Id": query["Id"], "StatusCode": cbor.String("Complete"),
			"Values": cbor.List{cbor.Float64(age.Seconds())}, "Timestamps": cbor.List{&minute},
		})
	}
	return all
}
