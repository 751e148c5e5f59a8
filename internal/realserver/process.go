package realserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// watchdog is a shell that becomes the server, $3 and on, after it has left a process of its own behind in the server's
// group. That one waits for the end of a pipe which this process holds, and which ends also when this process is killed,
// or panics, and can no longer clean up; then it ends the server and removes its files, $1. SIGQUIT first: a PostgreSQL
// then removes its shared memory, which outlives it otherwise.
const watchdog = `scratch=$1; shift
{ cat <&3 >/dev/null; kill -QUIT $$; sleep 1; kill -KILL $$; rm -rf -- "$scratch"; } 2>/dev/null &
exec "$@" 3<&-`

// process is one life of a server.
type process struct {
	cmd    *exec.Cmd
	alive  *os.File // the pipe's end that the watchdog waits for
	exited chan struct{}
}

func (s *Server) spawn(program string, args ...string) (*process, error) {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // the watchdog has its own copy
	cmd := exec.Command("sh", append([]string{"-c", watchdog, "sh", s.scratch, program}, args...)...)
	cmd.Dir, cmd.Env = s.scratch, environment(s.scratch)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	if err := isolate(cmd); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	p := &process{cmd: cmd, alive: ours, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it ends by a signal as a rule, which is an error here
		close(p.exited)
	}()
	return p, nil
}

// await waits until ask has no error. It returns [errEnded] where the server ended first.
func (p *process) await(ctx context.Context, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

var errEnded = errors.New("it ended before it was ready")

// kill ends server and watchdog with SIGKILL.
func (p *process) kill() {
	killGroup(p.cmd)
	<-p.exited
	_ = p.alive.Close() // nobody reads it any more
}

// quitTimeout is how long a server may take to end by itself.
const quitTimeout = 5 * time.Second

// quit lets the server remove what it has outside its folder, and kills what is left.
func (p *process) quit() {
	_ = p.cmd.Process.Signal(quitSignal) // it may have ended before
	select {
	case <-p.exited:
	case <-time.After(quitTimeout):
	}
	p.kill()
}

// run runs one of the kind's programs as the server's user, to its end.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	path, err := find(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = s.scratch, environment(s.scratch)
	if err := isolate(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, last(out))
	}
	return nil
}

// environment has no setting of ours but where programs are: PGDATA or MYSQL_HOST would lead elsewhere.
func environment(scratch string) []string {
	return []string{"HOME=" + scratch, "TMPDIR=" + scratch, "LC_ALL=C", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
}

// tail returns the end of a log: what went wrong is there.
func tail(file string) []byte {
	log, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return []byte(err.Error())
	}
	return last(log)
}

func last(log []byte) []byte {
	const most = 4 << 10
	return bytes.TrimSpace(log[max(0, len(log)-most):])
}
