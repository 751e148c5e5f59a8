package fifo

import (
	"net/http"
	"testing"
	"time"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A signature that was refused although the clocks differ by little was not refused for that.
func TestIsSkewed(t *testing.T) {
	t.Parallel()
	signed := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]bool{
		0: false, 3 * time.Minute: false, -3 * time.Minute: false, mostSkew: false, -mostSkew: false,
		mostSkew + time.Second: true, -mostSkew - time.Second: true,
	} {
		request := smithyhttp.NewStackRequest().(*smithyhttp.Request)
		request.Header.Set("X-Amz-Date", signed.Format("20060102T150405Z"))
		response := &smithyhttp.Response{Response: &http.Response{Header: http.Header{}}}
		response.Header.Set("Date", signed.Add(ahead).Format(http.TimeFormat))
		if got := isSkewed(request, response); got != want {
			t.Errorf("SQS's clock is ahead by %s: skewed %t, want %t", ahead, got, want)
		}
	}
}
