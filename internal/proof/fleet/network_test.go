//go:build unix

package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// trouble is a fault of a network.
type trouble struct {
	kind    string
	service string  // "": both
	keys    string  // only requests that name keys with this text. "": all
	share   float64 // of the requests
}

// The faults that are no answer of a service.
const (
	late       = "late"    // up to mostLate, before or after the effect
	refused    = "refused" // the connection breaks before the effect
	cut        = "cut"     // the connection breaks in the middle of the answer
	page       = "page"    // a proxy's, in HTML
	mostLate   = 8 * time.Second
	mostSkewed = 5 * time.Minute
)

// refusal is an answer of SQS and DynamoDB.
type refusal struct {
	sqs, dynamoDB string
	status        int
}

var refusals = map[string]refusal{
	"expired":   {"ExpiredTokenException", "ExpiredTokenException", http.StatusForbidden},
	"skewed":    {"InvalidSignatureException", "InvalidSignatureException", http.StatusForbidden},
	"throttled": {"RequestThrottled", "ProvisionedThroughputExceededException", http.StatusBadRequest},
	"broken":    {"InternalError", "InternalServerError", http.StatusInternalServerError},
}

// draw draws trouble: of some requests, of all of a service, or of those for some keys, as where partitions of a table are down.
func draw(rng *rand.Rand) *trouble {
	kinds := []string{late, late, refused, cut, cut, page, "expired", "throttled", "broken"}
	t := &trouble{kind: kinds[rng.IntN(len(kinds))], service: []string{"", "SQS", "DynamoDB"}[rng.IntN(3)], share: 0.1 + rng.Float64()/2}
	switch rng.IntN(4) {
	case 0:
		t.share = 1
	case 1:
		t.service, t.keys, t.share = "DynamoDB", fmt.Sprintf("%s|%d/", source, rng.IntN(prefixes)), 1
	}
	return t
}

// network is between the processes of a seat and AWS.
type network struct {
	*httptest.Server
	seat       string
	aws        http.Handler
	everywhere *network       // its trouble comes first
	running    sync.WaitGroup // requests, also of processes that have died

	trouble atomic.Pointer[trouble]

	mu       sync.Mutex
	receives []receive
	sends    []receive // of events
}

// receive is a message in an answer to a receive.
type receive struct {
	at                   time.Time
	seat, event, message string
	count                int
	delivered            bool // the answer was sent
}

// fate is what becomes of a request.
func (n *network) fate(service string, r *http.Request, body []byte) (kind string, before, after time.Duration) {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	t := cmp.Or(n.everywhere.trouble.Load(), n.trouble.Load())
	switch {
	case err != nil || time.Since(signed).Abs() > mostSkewed:
		return "skewed", 0, 0
	case t == nil || t.service != "" && t.service != service || rand.Float64() >= t.share || !bytes.Contains(body, []byte(t.keys)):
		return "", 0, 0
	case t.kind != late:
		return t.kind, 0, 0
	case rand.IntN(2) == 0:
		return late, rand.N(mostLate), 0
	}
	return late, 0, rand.N(mostLate)
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.running.Add(1)
	defer n.running.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	target, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	service := "SQS"
	if strings.HasPrefix(target, "DynamoDB") {
		service = "DynamoDB"
	}
	kind, before, after := n.fate(service, r, body)
	if answer, ok := refusals[kind]; ok {
		code := answer.sqs
		if service == "DynamoDB" {
			code = answer.dynamoDB
		}
		w.Header().Set("X-Amzn-Requestid", "fleet")
		w.WriteHeader(answer.status)
		fmt.Fprintf(w, `{"__type":"com.amazonaws#%s","message":%q}`, code, kind)
		return
	}
	switch kind {
	case refused:
		panic(http.ErrAbortHandler)
	case page:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<html><body><h1>503 Service Unavailable</h1></body></html>")
		return
	}
	time.Sleep(before)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	n.aws.ServeHTTP(answer, r)
	out := answer.Body.Bytes()
	switch op {
	case "ReceiveMessage":
		n.note(out, kind != cut)
	case "SendMessageBatch":
		n.noteSends(body, answer.Code == http.StatusOK && kind != cut)
	}
	time.Sleep(after)
	maps.Copy(w.Header(), answer.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(answer.Code)
	if kind != cut {
		_, _ = w.Write(out) // the process may have died
		return
	}
	_, _ = w.Write(out[:len(out)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// note notes which messages a receive hands out.
func (n *network) note(out []byte, delivered bool) {
	var answer sqs.ReceiveMessageOutput
	_ = json.Unmarshal(out, &answer) // an error has no messages
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range answer.Messages {
		count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		n.receives = append(n.receives, receive{time.Now(), n.seat, *m.Body, *m.MessageId, count, delivered})
	}
}

// noteSends notes which events a request sends.
func (n *network) noteSends(body []byte, confirmed bool) {
	var in sqs.SendMessageBatchInput
	_ = json.Unmarshal(body, &in)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range in.Entries {
		n.sends = append(n.sends, receive{at: time.Now(), seat: n.seat, event: *e.MessageBody, delivered: confirmed})
	}
}
