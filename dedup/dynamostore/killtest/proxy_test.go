package killtest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// proxy is between the children and DynamoDB. It kills a child during a request, and records which events are completed.
type proxy struct {
	supervisor *supervisor
	to         http.RoundTripper
	url        *url.URL // of the service
	late       sync.WaitGroup

	mu        sync.Mutex
	completed map[string]time.Time // by the record's key
}

// request is the part of a request that the proxy reads.
type request struct {
	UpdateExpression string
	Key              map[string]map[string]string
	Statements       []struct {
		Statement  string
		Parameters []map[string]string
	}
	TransactItems []struct {
		Update *struct {
			TableName string
			Key       map[string]map[string]string
		}
	}
}

func (f *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var req request
	_ = json.Unmarshal(body, &req) // the service checks it
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	name, at := r.Header.Get(childHeader), req.point(op)
	kill, before, late := f.supervisor.chance(name, at)
	if kill && before {
		f.supervisor.kill(name, at)
		if late > 0 {
			f.late.Go(func() {
				time.Sleep(late)
				_, _, _ = f.forward(r, op, req, body)
			})
		}
		panic(http.ErrAbortHandler) // the connection breaks
	}
	status, header, answer := f.forward(r, op, req, body)
	if kill {
		f.supervisor.kill(name, at)
	}
	if kill || status == 0 {
		panic(http.ErrAbortHandler)
	}
	for k, v := range header {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // to a child that may be dead
}

// forward sends the request to the service, on no child's context. Status 0: there was no answer.
func (f *proxy) forward(r *http.Request, op string, req request, body []byte) (int, http.Header, []byte) {
	out, err := http.NewRequest(r.Method, f.url.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil
	}
	out.Header = r.Header.Clone()
	resp, err := f.to.RoundTrip(out)
	if err != nil {
		return 0, nil, nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, nil
	}
	if resp.StatusCode == http.StatusOK {
		f.note(req, op, answer)
	}
	return resp.StatusCode, resp.Header, answer
}

func (r *request) point(op string) point {
	switch {
	case op == "TransactWriteItems":
		return atCommit
	case op == "BatchExecuteStatement" && strings.HasPrefix(r.Statements[0].Statement, "INSERT"):
		return atAcquire
	case op == "BatchExecuteStatement":
		return atComplete
	case op != "UpdateItem":
		return elsewhere
	case strings.Contains(r.UpdateExpression, ":fence"):
		return atAcquire
	case strings.Contains(r.UpdateExpression, ":until"):
		return atRenew
	case strings.Contains(r.UpdateExpression, ":zero"):
		return atRelease
	default:
		return atComplete
	}
}

// note records which events the answered request has completed.
func (f *proxy) note(r request, op string, answer []byte) {
	var keys []string
	switch p := r.point(op); {
	case p == atCommit:
		keys = append(keys, r.TransactItems[0].Update.Key["id"]["S"])
	case p == atComplete && op == "UpdateItem":
		keys = append(keys, r.Key["id"]["S"])
	}
	if op == "BatchExecuteStatement" {
		var out struct{ Responses []struct{ Error *struct{} } }
		_ = json.Unmarshal(answer, &out)
		for i, s := range r.Statements {
			if strings.HasPrefix(s.Statement, "UPDATE") && i < len(out.Responses) && out.Responses[i].Error == nil {
				keys = append(keys, s.Parameters[1]["S"])
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range keys {
		if f.completed[k].IsZero() {
			f.completed[k] = time.Now()
		}
	}
}

func (f *proxy) completedAt(key string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.completed[key]
}

func (f *proxy) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.completed)
}
