package testserver

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestEmulatorsAnswer(t *testing.T) {
	t.Parallel()
	for _, e := range Emulators() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := e.Shared(t)
			if again := e.Shared(t); again != s {
				t.Error("a second call of Shared started a second process")
			}
			if err := s.ask(t.Context(), e.probe); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	s := Fauxqs.Shared(t)
	created := func(queue string) time.Time {
		var out struct {
			QueueURL   string `json:"QueueUrl"`
			Attributes map[string]string
		}
		s.call(t, "CreateQueue", `{"QueueName":"`+queue+`"}`, &out)
		s.call(t, "GetQueueAttributes", `{"QueueUrl":"`+out.QueueURL+`","AttributeNames":["All"]}`, &out)
		seconds, err := strconv.ParseInt(out.Attributes["CreatedTimestamp"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(seconds, 0)
	}
	before := created("before")
	if err := s.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	if after := created("after"); after.Sub(before) < time.Hour || after.Sub(before) > time.Hour+time.Minute {
		t.Errorf("queues created %v and %v, want an hour between them", before, after)
	}
}

func (s *Service) call(t *testing.T, op, in string, out any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AmazonSQS."+op)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // only read from
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", op, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}

// script is an emulator that is a shell script; it never answers.
func script(text string) *Emulator {
	return &Emulator{Name: "moto", Version: "1", ports: 1, probe: probeSQS, command: func(string, string, []int) *exec.Cmd {
		return exec.Command("sh", "-c", text)
	}}
}

func TestFailedStartOfAnEmulatorShowsTheLog(t *testing.T) {
	t.Parallel()
	_, err := script("echo the license has expired; exit 55").launch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), "the license has expired") {
		t.Errorf("got error %v, want one with the log", err)
	}
}

// The children of an emulator end with it, also when the test process is killed and cannot stop it: the watchdog then sees
// the end of its pipe, and nothing else.
func TestWholeProcessGroupEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	// The grandchild has the pipe open until it ends.
	p, err := startProcess(exec.Command("sh", "-c", "sleep 600 >'"+pipe+"' & wait"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_ = p.pipe.Close()
	done := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(r)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the grandchild still runs")
	}
	<-p.exited
}
