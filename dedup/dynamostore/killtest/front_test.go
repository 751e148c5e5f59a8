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

// front is between the children and DynamoDB: it kills a child in the middle of a request, and notes what is completed.
type front struct {
	crew *crew
	to   http.RoundTripper
	url  *url.URL // of the service
	late sync.WaitGroup

	mu        sync.Mutex
	completed map[string]time.Time // by the record's key
}

// request is what the front reads of a request.
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

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var req request
	_ = json.Unmarshal(body, &req) // the service judges it
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	name, at := r.Header.Get(childHeader), req.point(op)
	kill, before, late := f.crew.chance(name, at)
	if kill && before {
		f.crew.kill(name, at)
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
		f.crew.kill(name, at)
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

// forward has the request's effect, on no child's context. Status 0: there was no answer.
func (f *front) forward(r *http.Request, op string, req request, body []byte) (int, http.Header, []byte) {
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

// note remembers which records the answered request has completed.
func (f *front) note(r request, op string, answer []byte) {
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

func (f *front) completedAt(key string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.completed[key]
}

func (f *front) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.completed)
}
