//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// network is a proxy before AWS that breaks a part of the calls.
type network struct {
	to string // URL

	mu  sync.Mutex
	rng *rand.Rand
	bad float64  // of calls
	ops []string // whose calls; nil: all
	log []string // what was broken
}

// The ways in which a call breaks.
const (
	pageOfProxy = "a page of a proxy"
	portal      = "a page of a portal"
	empty       = "an empty answer" // of SQS alone: DynamoDB's have a checksum
	throttled   = "throttled"
	denied      = "denied"
	lostRequest = "a lost request"
	lostAnswer  = "a lost answer"
	cutWhole    = "a part of the answer, as if it were whole"
	cutShort    = "a part of the answer"
	slow        = "a slow answer"
)

var breaks = []string{pageOfProxy, portal, empty, throttled, denied, lostRequest, lostAnswer, cutWhole, cutShort, slow}

func (n *network) set(bad float64, ops ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bad, n.ops = bad, ops
}

// draw is how a call breaks, or "", and a number in [0,1) for it.
func (n *network) draw(target string) (way string, part float64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	service, op, _ := strings.Cut(target, ".")
	if n.rng.Float64() >= n.bad || n.ops != nil && !slices.Contains(n.ops, op) {
		return "", 0
	}
	way, part = breaks[n.rng.IntN(len(breaks))], n.rng.Float64()
	if way == empty && service != "AmazonSQS" {
		way = lostRequest
	}
	n.log = append(n.log, target+": "+way)
	return way, part
}

func (n *network) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	way, part := n.draw(r.Header.Get("X-Amz-Target"))
	answer := func(status int, kind, body string) {
		rw.Header().Set("Content-Type", kind)
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}
	refuse := func(code string) {
		rw.Header().Set("X-Amzn-Requestid", "attack")
		answer(http.StatusBadRequest, "application/x-amz-json-1.0", fmt.Sprintf(`{"__type":"com.amazonaws#%s","message":"attack"}`, code))
	}
	switch way {
	case pageOfProxy:
		answer(http.StatusBadGateway, "text/html", "<html>502 Bad Gateway</html>")
	case portal:
		answer(http.StatusOK, "text/html", "<html>Welcome to the airport</html>")
	case empty:
		answer(http.StatusOK, "application/x-amz-json-1.0", "")
	case throttled:
		refuse("ThrottlingException")
	case denied:
		refuse("AccessDeniedException")
	case lostRequest:
		panic(http.ErrAbortHandler)
	default:
		n.forward(rw, r, way, part)
	}
}

// forward has AWS carry a call out, and breaks the answer.
func (n *network) forward(rw http.ResponseWriter, r *http.Request, way string, part float64) {
	if way == slow {
		time.Sleep(time.Duration(part * float64(2*time.Second)))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the command has gone
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, n.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	out.Header, out.Host = r.Header.Clone(), r.Host
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || way == lostAnswer {
		panic(http.ErrAbortHandler)
	}
	size := len(answer)
	if way == cutWhole || way == cutShort {
		answer = answer[:int(part*float64(size))]
	}
	if way == cutWhole {
		size = len(answer)
	}
	maps.Copy(rw.Header(), resp.Header)
	rw.Header().Set("Content-Length", strconv.Itoa(size))
	rw.WriteHeader(resp.StatusCode)
	_, _ = rw.Write(answer) // the command may have gone
	if len(answer) < size {
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
}
