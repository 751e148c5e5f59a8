package testserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// watchdog is a shell that becomes the server, $2 and on, after it has started a second process in the server's process
// group. That process waits for the end of a pipe which the test process has open. The pipe also ends when the test
// process is killed, or panics, and cannot clean up. Then the second process ends the server and everything that the
// server has started, and removes the folder, $1. SIGQUIT comes first: PostgreSQL then removes its shared memory, which
// would otherwise outlive it.
const watchdog = `folder=$1; shift
{ cat <&3 >/dev/null; kill -QUIT $$; sleep 1; kill -KILL $$; rm -rf -- "$folder"; kill -KILL 0; } 2>/dev/null &
exec "$@" 3<&-`

// process is one run of a server's program.
type process struct {
	cmd    *exec.Cmd
	pipe   *os.File // that the watchdog waits for
	exited chan struct{}
}

// startProcess starts a server's command in its folder, where it writes its log.
func startProcess(server *exec.Cmd, folder string) (*process, error) {
	if server.Err != nil {
		return nil, server.Err
	}
	log, err := os.OpenFile(logFile(folder), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has its own copy
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close() // the watchdog has its own copy
	cmd := exec.Command("sh", append([]string{"-c", watchdog, "sh", folder, server.Path}, server.Args[1:]...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = folder, append(environment(folder), server.Env...), server.SysProcAttr
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	if err := ownGroup(cmd); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	p := &process{cmd: cmd, pipe: ours, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // most servers end by a signal, which is an error here
		close(p.exited)
	}()
	return p, nil
}

// await waits until probe returns no error. It returns errEnded when the server ends first.
func (p *process) await(ctx context.Context, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
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

// kill ends the server, what it has started, and the watchdog with SIGKILL.
func (p *process) kill() {
	killGroup(p.cmd)
	<-p.exited
	_ = p.pipe.Close() // its reader is gone
}

// quitTimeout is how long a server may take to end by itself.
const quitTimeout = 5 * time.Second

// quit lets the server remove what it has outside its folder, then kills what still runs.
func (p *process) quit() {
	_ = p.cmd.Process.Signal(quitSignal) // it may have ended before
	select {
	case <-p.exited:
	case <-time.After(quitTimeout):
	}
	p.kill()
}

// environment has no setting of the test process but where programs are: AWS_ENDPOINT_URL, PGDATA or MYSQL_HOST would
// lead elsewhere.
func environment(folder string) []string {
	env := []string{"HOME=" + folder, "TMPDIR=" + folder, "LC_ALL=C", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
	if java, ok := os.LookupEnv("JAVA_HOME"); ok {
		env = append(env, "JAVA_HOME="+java)
	}
	return env
}

func logFile(folder string) string { return filepath.Join(folder, "log") }

// logEnd returns the end of the log in the folder, which says what went wrong.
func logEnd(folder string) []byte {
	log, err := os.ReadFile(logFile(folder))
	if err != nil {
		return []byte(err.Error())
	}
	return end(log)
}

// end returns the last 4 KiB of what a program said.
func end(output []byte) []byte {
	const most = 4 << 10
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

// Host is the address that every server listens on.
const Host = "127.0.0.1"

// Ports are below those that the system gives to outgoing connections: a client that reconnects again and again while its
// server is down would otherwise get the server's port as its own now and then, and connect to itself. The nodes of a
// Redis cluster also listen at their port plus 10,000.
const (
	firstPort   = 12_000
	portCount   = 10_000
	portSamples = 200
)

// ReservePort returns a port that nothing listens on. Every process that takes a port here first opens the UDP port of the
// same number, which no server uses, and keeps it open until reserved is closed: no other process takes the port while the
// server is down.
func ReservePort() (port int, reserved io.Closer, err error) {
	var last error
	for range portSamples {
		port := firstPort + rand.IntN(portCount)
		address := net.JoinHostPort(Host, strconv.Itoa(port))
		reserved, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = l.Close()
		}
		if err == nil {
			return port, reserved, nil
		}
		last = errors.Join(err, reserved.Close())
	}
	return 0, nil, fmt.Errorf("no free port in %d samples: %w", portSamples, last)
}
