// Package pipe is how the bench calls another process: over its standard input and output, with a line of JSON for each
// request and each response. Sockets would be counted as connections of the contestant.
package pipe

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

type request struct {
	Call string          `json:"call"`
	With json.RawMessage `json:"with,omitempty"`
}

type response struct {
	Reply json.RawMessage `json:"reply,omitempty"`
	Error string          `json:"error,omitempty"`
}

// Handler serves one call.
type Handler func(with json.RawMessage) (reply any, err error)

// Serve serves calls until in ends: the calling process has exited, or needs nothing more.
func Serve(in io.Reader, out io.Writer, handlers map[string]Handler) error {
	requests, responses := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
		if err := responses.Encode(respond(handlers[r.Call], r)); err != nil {
			return fmt.Errorf("pipe: %w", err)
		}
	}
}

func respond(h Handler, r request) response {
	if h == nil {
		return response{Error: "no such call: " + r.Call}
	}
	reply, err := h(r.With)
	if err != nil {
		return response{Error: err.Error()}
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Reply: raw}
}

// Process is a process that serves calls.
type Process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *tail
}

// Start starts a command that serves calls. The process is killed when ctx ends.
func Start(ctx context.Context, name string, env []string, command ...string) (*Process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	p := &Process{name: name, cmd: cmd, stderr: &tail{}}
	cmd.Stderr = p.stderr
	cmd.WaitDelay = time.Second
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, err
	}
	p.in, p.out = in, json.NewDecoder(bufio.NewReader(out))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Call makes a call and decodes its reply into reply, which may be nil.
func (p *Process) Call(call string, with, reply any) error {
	raw, err := json.Marshal(with)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(p.in).Encode(request{Call: call, With: raw}); err != nil {
		return p.failure(call, err)
	}
	var r response
	if err := p.out.Decode(&r); err != nil {
		return p.failure(call, err)
	}
	if r.Error != "" {
		return fmt.Errorf("%s: %s: %s", p.name, call, r.Error)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(r.Reply, reply)
}

// failure is the error of a call that got no response, with what the process wrote to standard error.
func (p *Process) failure(call string, err error) error {
	if text := strings.TrimSpace(p.stderr.String()); text != "" {
		return fmt.Errorf("%s: %s: %w; it wrote: %s", p.name, call, err, text)
	}
	return fmt.Errorf("%s: %s: %w", p.name, call, err)
}

// PID is the ID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stderr returns the end of what the process wrote to standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// Kill ends the process and waits until it has exited. It is not how the stop of a contestant is measured: that is a call.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only where the process has exited already
	_ = p.cmd.Wait()         // reports the kill
}

// tail is a writer that keeps the last 4 KB.
type tail struct {
	mu sync.Mutex // the process writes while a failed call reads
	b  bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(p)
	if over := t.b.Len() - 4<<10; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}
