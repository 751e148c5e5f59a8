package statusreport

import (
	"encoding/json"
	"testing"
	"time"
)

// TestNames: those of /running and the probes are for those who read them, as are those in testdata/stats.json.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		v    any
		want string
	}{
		{RunningReport{1, time.Unix(0, 0).UTC(), 2, []Running{{"orders", "m1", "k", "g", 3, 1.5, -2, true}, {Queue: "orders", MessageID: "m2"}}},
			`{"v":1,"now":"1970-01-01T00:00:00Z","total":2,"running":[` +
				`{"queue":"orders","message_id":"m1","key":"k","group":"g","receives":3,"seconds":1.5,"lease_seconds":-2,"stuck":true},` +
				`{"queue":"orders","message_id":"m2","receives":0,"seconds":0,"lease_seconds":0,"stuck":false}]}`},
		{Probe{1, false, []ProbeWorker{{"orders", "ended", false, "the worker has ended"}, {"refunds", "running", true, ""}}},
			`{"v":1,"ok":false,"workers":[{"queue":"orders","state":"ended","ok":false,"reason":"the worker has ended"},` +
				`{"queue":"refunds","state":"running","ok":true}]}`},
	} {
		if got, err := json.Marshal(tt.v); err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
		}
	}
}
