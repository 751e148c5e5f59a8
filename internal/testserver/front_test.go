package testserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce/localstack/fault"
)

// onFront runs f in a bubble with a front of Dynoxide, which has a table named as the test.
func onFront(t *testing.T, f func(t *testing.T, front *Front, table string)) {
	t.Helper()
	line := NewLine(Dynoxide.Shared(t).URL)
	synctest.Test(t, func(t *testing.T) {
		front := NewFront(line)
		defer front.Close()
		table := strings.ReplaceAll(t.Name(), "/", "-")
		in := `{"TableName":"` + table + `","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}`
		if got, err := request(t.Context(), front, "CreateTable", in); err != nil || got.status != http.StatusOK {
			t.Fatalf("CreateTable: got %v and error %v", got, err)
		}
		f(t, front, table)
	})
}

type response struct {
	status int
	date   string
	body   string
}

func request(ctx context.Context, front *Front, op, body string) (response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dynamodb.local/", strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	resp, err := front.RoundTrip(r)
	if err != nil {
		return response{}, err
	}
	raw, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header.Get("Date"), string(raw)}, err
}

func put(t *testing.T, front *Front, table string) (response, error) {
	t.Helper()
	return request(t.Context(), front, "PutItem", `{"TableName":"`+table+`","Item":{"id":{"S":"a"}}}`)
}

// Each fault, what the client gets of it, and whether the item is stored.
func TestFrontInjectsFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule   fault.Rule
		status int // 0: the connection breaks
		stored bool
		took   time.Duration
		calls  int
	}{
		"none":               {fault.Rule{Op: "GetItem", Nth: 1, Do: fault.Error}, 200, true, 0, 1},
		"error":              {fault.Rule{Nth: 1, Do: fault.Error}, 500, false, 0, 1},
		"error with a code":  {fault.Rule{Nth: 1, Do: fault.Error, Code: "ThrottlingException"}, 400, false, 0, 1},
		"error after":        {fault.Rule{Nth: 1, Do: fault.Error, After: true}, 500, true, 0, 1},
		"reset":              {fault.Rule{Nth: 1, Do: fault.Reset}, 0, false, 0, 1},
		"reset after":        {fault.Rule{Nth: 1, Do: fault.Reset, After: true}, 0, true, 0, 1},
		"lost response":      {fault.Rule{Nth: 1, Do: fault.LoseReply}, 0, true, 0, 1},
		"delay":              {fault.Rule{Nth: 1, Do: fault.Delay, Delay: time.Hour}, 200, true, time.Hour, 1},
		"delayed copy":       {fault.Rule{Nth: 1, Do: fault.Replay, Delay: time.Minute}, 200, true, 0, 2},
		"not of this method": {fault.Rule{Nth: 1, Do: fault.FailEntries}, 200, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onFront(t, func(t *testing.T, front *Front, table string) {
				front.Set(fault.Plan{Rules: []fault.Rule{tt.rule}})
				before, start := len(front.Calls()), time.Now()
				got, err := put(t, front, table)
				if tt.status == 0 != errors.Is(err, syscall.ECONNRESET) || got.status != tt.status {
					t.Errorf("got status %d and error %v, want status %d", got.status, err, tt.status)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if want := time.Now().UTC().Format(http.TimeFormat); err == nil && got.date != want {
					t.Errorf("Date: got %s, want the bubble's %s", got.date, want)
				}
				time.Sleep(2 * time.Minute)
				if stored := len(front.Items(table)) == 1; stored != tt.stored {
					t.Errorf("stored: got %t, want %t", stored, tt.stored)
				}
				if calls := len(front.Calls()) - before; calls != tt.calls {
					t.Errorf("%d calls recorded, want %d", calls, tt.calls)
				}
			})
		})
	}
}

func TestFrontCancelsTransactions(t *testing.T) {
	t.Parallel()
	onFront(t, func(t *testing.T, front *Front, table string) {
		front.Set(fault.Plan{Rules: []fault.Rule{{Nth: 1, Do: fault.FailEntries, Entries: []int{1}}}})
		item := func(id string) string {
			return `{"Put":{"TableName":"` + table + `","Item":{"id":{"S":"` + id + `"}}}}`
		}
		got, err := request(t.Context(), front, "TransactWriteItems", `{"TransactItems":[`+item("a")+`,`+item("b")+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ CancellationReasons []struct{ Code string } }
		if err := json.Unmarshal([]byte(got.body), &out); err != nil {
			t.Fatal(err)
		}
		if got.status != 400 || len(out.CancellationReasons) != 2 || out.CancellationReasons[0].Code != "None" || out.CancellationReasons[1].Code != "TransactionConflict" {
			t.Errorf("got status %d and %s, want a conflict of the second action", got.status, got.body)
		}
		if n := len(front.Items(table)); n != 0 {
			t.Errorf("%d items stored, want none", n)
		}
	})
}

// A call that has begun has its effect, also when its client has left.
func TestFrontFinishesCalls(t *testing.T) {
	t.Parallel()
	onFront(t, func(t *testing.T, front *Front, table string) {
		front.Set(fault.Plan{Rules: []fault.Rule{{Nth: 1, Do: fault.Delay, Delay: time.Minute}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := request(ctx, front, "PutItem", `{"TableName":"`+table+`","Item":{"id":{"S":"a"}}}`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want context.DeadlineExceeded", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(front.Items(table)); n != 1 {
			t.Errorf("%d items stored, want 1", n)
		}
	})
}

// The bubble's clock is years behind the emulator's: the front decides which items have expired.
func TestFrontSweepsByItsOwnClock(t *testing.T) {
	t.Parallel()
	onFront(t, func(t *testing.T, front *Front, table string) {
		expires := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
		for op, in := range map[string]string{
			"UpdateTimeToLive": `{"TableName":"` + table + `","TimeToLiveSpecification":{"AttributeName":"expires","Enabled":true}}`,
			"PutItem":          `{"TableName":"` + table + `","Item":{"id":{"S":"a"},"expires":{"N":"` + expires + `"}}}`,
		} {
			if got, err := request(t.Context(), front, op, in); err != nil || got.status != http.StatusOK {
				t.Fatalf("%s: got %v and error %v", op, got, err)
			}
		}
		for _, want := range []int{0, 1} {
			if got := front.SweepTTL(); got != want {
				t.Errorf("swept %d items after %v, want %d", got, time.Duration(want)*2*time.Hour, want)
			}
			time.Sleep(2 * time.Hour)
		}
	})
}

func TestFrontDeletesItsTables(t *testing.T) {
	t.Parallel()
	name := ""
	onFront(t, func(_ *testing.T, _ *Front, table string) { name = table })
	status, _, err := NewLine(Dynoxide.Shared(t).URL).Call("DescribeTable", []byte(`{"TableName":"`+name+`"}`))
	if err != nil || status != http.StatusBadRequest {
		t.Errorf("DescribeTable after Close: got status %d and error %v, want 400", status, err)
	}
}
