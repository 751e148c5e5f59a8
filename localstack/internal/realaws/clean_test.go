package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

const left = "sqsonce-aws-0a1b2c3d-left"

// answers is AWS as a transport: an answer for each operation, S3's being called by the method. Without one for DeleteQueue
// that deletes the queue.
type answers struct {
	of     map[string]func(*http.Request) (status int, body string)
	queues []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	operation := strings.TrimPrefix(path.Ext(r.Header.Get("X-Amz-Target")), ".")
	if operation == "" {
		operation = r.Method
	}
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		operation = form.Get("Action")
	}
	status, body := http.StatusOK, map[string]string{
		"ListStacks": "<R><ListStacksResult><StackSummaries/></ListStacksResult></R>", "GET": "<R><Buckets/></R>", "ListTables": `{"TableNames":[]}`,
	}[operation]
	switch f := a.of[operation]; {
	case f != nil:
		status, body = f(r)
	case operation == "ListQueues":
		body = `{"QueueUrls":["` + strings.Join(a.queues, `","`) + `"]}`
	case operation == "DeleteQueue":
		a.queues, body = nil, "{}"
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (a *answers) account() *account.Account {
	guard := &account.Guard{Account: number, Region: "us-east-1", Next: a}
	return &account.Account{Number: number, Region: "us-east-1", Guard: guard, Config: aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("fake", "fake", ""), HTTPClient: &http.Client{Transport: guard},
	}}
}

func problem(status int, code, message string) func(*http.Request) (int, string) {
	return func(*http.Request) (int, string) {
		return status, "<R><Error><Code>" + code + "</Code><Message>" + message + "</Message></Error></R>"
	}
}

// What cannot be listed is an error, and the rest is deleted.
func TestCleanWithoutAPermission(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"ListStacks", "GET"} {
		synctest.Test(t, func(t *testing.T) {
			fake := &answers{queues: []string{"https://sqs/1/" + left}, of: map[string]func(*http.Request) (int, string){operation: problem(403, "AccessDenied", "no")}}
			if err := clean(context.Background(), fake.account(), io.Discard, 1); err == nil || !strings.Contains(err.Error(), "StatusCode: 403") {
				t.Errorf("%s: got error %v", operation, err)
			}
			if len(fake.queues) > 0 {
				t.Errorf("without %s the queue is left", operation)
			}
		})
	}
}

// A service that does not answer holds up the others for a minute only.
func TestListHasATimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &answers{queues: []string{"https://sqs/1/" + left}, of: map[string]func(*http.Request) (int, string){"ListStacks": func(r *http.Request) (int, string) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Hour):
			}
			return 200, ""
		}}}
		begin := time.Now()
		found, err := find(context.Background(), fake.account())
		if took := time.Since(begin); err == nil || len(found) != 1 || took > listTimeout {
			t.Errorf("found %v after %v, error %v", found, took, err)
		}
	})
}

// What a cut run was creating may be listed late.
func TestCleanWaitsForWhatComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &answers{}
		lists := 0
		fake.of = map[string]func(*http.Request) (int, string){"ListTables": func(*http.Request) (int, string) {
			if lists++; lists == 2 {
				fake.queues = []string{"https://sqs/1/" + left}
			}
			return 200, "{}"
		}}
		var out bytes.Buffer
		if err := clean(context.Background(), fake.account(), &out, 3); err != nil || !strings.Contains(out.String(), "deleting queue "+left) || len(fake.queues) > 0 {
			t.Errorf("left %v, error %v\n%s", fake.queues, err, &out)
		}
	})
}

// A protected stack is reported at once: only the user can change that. Another stack is still deleted.
func TestProtectedStack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		fake := &answers{of: map[string]func(*http.Request) (int, string){
			"ListStacks": func(*http.Request) (int, string) {
				const member = "<member><StackName>" + left + "</StackName><StackStatus>CREATE_COMPLETE</StackStatus></member>"
				return 200, "<R><ListStacksResult><StackSummaries>" + member + member + "</StackSummaries></ListStacksResult></R>"
			},
			"DeleteStack": func(r *http.Request) (int, string) {
				asked++
				return problem(400, "ValidationError", "Stack [x] cannot be deleted while TerminationProtection is enabled")(r)
			},
		}}
		begin := time.Now()
		if err := clean(context.Background(), fake.account(), io.Discard, 1); err == nil || time.Since(begin) > 0 || asked != 2 {
			t.Errorf("after %v and %d deletions: error %v", time.Since(begin), asked, err)
		}
	})
}

// A run that could not delete what it creates creates nothing, and leaves the last report. Not parallel: it sets the environment.
func TestRunNeedsTheLists(t *testing.T) {
	fake := &answers{of: map[string]func(*http.Request) (int, string){
		"GetCallerIdentity": func(*http.Request) (int, string) {
			return 200, "<R><GetCallerIdentityResult><Account>" + number + "</Account></GetCallerIdentityResult></R>"
		},
		"ListTables": problem(403, "AccessDenied", "no"),
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := fake.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	defer srv.Close()
	for _, v := range newFakeAWS(srv.URL, srv.URL, srv.URL).env {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || name == account.NumberVariable {
			t.Setenv(name, value)
		}
	}
	report := filepath.Join(t.TempDir(), "report.md")
	err := options{parts: "sqs", yes: true, outFile: report}.run(t.Context(), strings.NewReader(""), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "nothing was created") {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(report); err == nil {
		t.Error("a report was written")
	}
}
