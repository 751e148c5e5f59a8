package pipe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/bench/internal/pipe"
	"github.com/sqsonce/sqsonce/internal/must"
)

const child = "PIPE_TEST_CHILD"

// TestMain is also the main function of the called process.
func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "hello from the other process")
	if err := pipe.Serve(os.Stdin, os.Stdout, map[string]pipe.Handler{
		"double": func(with json.RawMessage) (any, error) {
			var n int
			err := json.Unmarshal(with, &n)
			return 2 * n, err
		},
		"fail": func(json.RawMessage) (any, error) { return nil, errors.New("sorry") },
		"exit": func(json.RawMessage) (any, error) { os.Exit(3); return nil, nil },
	}); err != nil {
		os.Exit(1)
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	self := must.Get(os.Executable())(t)
	p := must.Get(pipe.Start(t.Context(), "other", []string{child + "=1"}, self))(t)
	defer p.Kill()
	var n int
	if err := p.Call("double", 21, &n); err != nil || n != 42 {
		t.Errorf("got %d, %v, want 42", n, err)
	}
	for call, want := range map[string]string{"fail": "sorry", "nonsense": "no such call"} {
		if err := p.Call(call, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", call, err, want)
		}
	}
	if err := p.Call("exit", nil, nil); err == nil || !strings.Contains(err.Error(), "hello from the other process") {
		t.Errorf("got %v, want an error with what the process wrote", err)
	}
}
