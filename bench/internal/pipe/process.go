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

// Process is another process of the bench.
type Process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *tail
}

// Start runs a command that serves calls. It is killed when ctx ends.
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

// Call asks the process and decodes its answer into reply, which may be nil.
func (p *Process) Call(call string, with, reply any) error {
	raw, err := json.Marshal(with)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(p.in).Encode(request{Call: call, With: raw}); err != nil {
		return p.broken(call, err)
	}
	var r response
	if err := p.out.Decode(&r); err != nil {
		return p.broken(call, err)
	}
	if r.Error != "" {
		return fmt.Errorf("%s: %s: %s", p.name, call, r.Error)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(r.Reply, reply)
}

// broken is a process that answers no more; what it wrote last says why.
func (p *Process) broken(call string, err error) error {
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return fmt.Errorf("%s: %s: %w; it wrote: %s", p.name, call, err, said)
	}
	return fmt.Errorf("%s: %s: %w", p.name, call, err)
}

// PID is the process's ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Said returns the end of what the process wrote to standard error.
func (p *Process) Said() string { return p.stderr.String() }

// Kill ends the process at once and waits until it is gone. How a contestant stops is measured by a call, before.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only where it has ended already
	_ = p.cmd.Wait()         // reports the kill
}

// tail keeps the last few KB that were written to it.
type tail struct {
	mu sync.Mutex // the process writes while a call fails
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
