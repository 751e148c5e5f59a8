package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Process is a running emulator.
type Process struct {
	// URL is the service's.
	URL string

	cmd     *exec.Cmd
	alive   io.Closer // closing it ends the process group
	exited  chan struct{}
	scratch string
	clock   string
}

// startTimeout is how long an emulator may take to be ready, on a machine that is busy with others.
const startTimeout = 2 * time.Minute

// launch starts the emulator and waits until it answers.
func (e *Emulator) launch(ctx context.Context) (*Process, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	dir, err := e.Dir()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(e.ports)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", e.Name+"-")
	if err != nil {
		return nil, err
	}
	p := &Process{URL: loopback(ports[0]), scratch: scratch, exited: make(chan struct{})}
	if e.ports > 1 {
		p.clock = loopback(ports[1])
	}
	cmd, err := e.command(dir, scratch, ports)
	if err == nil {
		err = p.run(cmd)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	if err := p.await(ctx, e.probe); err != nil {
		return nil, errors.Join(fmt.Errorf("%w; its log ends:\n%s", err, tail(p.log())), p.stop())
	}
	return p, nil
}

// watchdog is a shell that leads the emulator's process group and kills it, itself included, at the end of its standard
// input or of the emulator. The input is a pipe that this process holds: it ends also when this process is killed, or
// panics, and can no longer clean up.
const watchdog = `{ "$@"; kill -KILL 0; } & cat >/dev/null; kill -KILL 0`

func (p *Process) run(cmd *exec.Cmd) error {
	program, err := exec.LookPath(cmd.Path)
	if err != nil {
		return err
	}
	log, err := os.Create(p.logFile())
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	p.cmd = exec.Command("sh", slices.Concat([]string{"-c", watchdog, "sh", program}, cmd.Args[1:])...)
	p.cmd.Dir, p.cmd.Env = p.scratch, append(environment(p.scratch), cmd.Env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	ownGroup(p.cmd)
	if p.alive, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait() // it is always killed, by itself or by the watchdog
		close(p.exited)
	}()
	return nil
}

// await waits until the emulator answers the probe.
func (p *Process) await(ctx context.Context, probe string) error {
	for {
		err := p.ask(ctx, probe)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *Process) ask(ctx context.Context, probe string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	r.Header.Set("X-Amz-Target", probe)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	// Nobody verifies the signature, but some want one, and some read the service's name in it.
	service := "sqs"
	if probe == probeDynamoDB {
		service = "dynamodb"
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the probe was answered with %s", resp.Status)
	}
	return nil
}

// Advance sets the clock of a [Fauxqs] ahead.
func (p *Process) Advance(d time.Duration) error {
	resp, err := http.Post(p.clock+"/?ms="+strconv.FormatInt(d.Milliseconds(), 10), "", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// stopTimeout is how long the watchdog may take; a kill needs no longer.
const stopTimeout = 10 * time.Second

// stop ends the process group and removes its files.
func (p *Process) stop() error {
	_ = p.alive.Close() // closed before when the process has exited
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		return errors.New("the emulator did not end")
	}
	return os.RemoveAll(p.scratch)
}

func (p *Process) logFile() string { return filepath.Join(p.scratch, "log") }

func (p *Process) log() []byte {
	b, err := os.ReadFile(p.logFile())
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

func loopback(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// freePorts returns ports that nothing listens on. All are held until the last is found, so that they differ.
func freePorts(n int) ([]int, error) {
	var out []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}
