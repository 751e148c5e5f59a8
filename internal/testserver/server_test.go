//go:build darwin || linux

package testserver

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

func TestMain(m *testing.M) {
	if os.Getenv("TESTSERVER_CHILD") != "" {
		startAndWait()
	}
	Main(m)
}

// everyDatabase has MySQL too, which is skipped where the environment does not name it, and not PgBouncer.
func everyDatabase() []*Database { return databases[:len(databases)-1] }

func TestServersRestart(t *testing.T) {
	t.Parallel()
	for _, d := range everyDatabase() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			s := d.Start(t)
			must.Do(t, s.ask(t.Context()))
			s.Kill()
			s.Kill() // does nothing
			if err := s.ask(t.Context()); err == nil {
				t.Fatal("it still runs after Kill")
			}
			s.Restart(t)
			must.Do(t, s.ask(t.Context()))
			if err := s.Relaunch(t.Context()); err == nil {
				t.Error("a running server was started again")
			}
			must.Do(t, s.Stop())
			if _, err := os.Stat(s.folder); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its files are still there: %v", err)
			}
			s.reserved = nopCloser{} // the cleanup stops it again
		})
	}
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// A crash loses what the options say.
func TestAppendOnly(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		optFns []func(*Options)
		want   string
	}{
		{"in memory", nil, "$-1"},
		{"append only", []func(*Options){AppendOnly}, "$1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := Redis.Start(t, tt.optFns...)
			if got := command(t, s, "SET k v"); got != "+OK" {
				t.Fatal(got)
			}
			s.Kill()
			s.Restart(t)
			if got := command(t, s, "GET k"); got != tt.want {
				t.Errorf("after a crash: got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := Redis.Start(t)
	must.Do(t, s.Pause())
	if err := s.ask(t.Context()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("paused: got error %v, want a timeout", err)
	}
	must.Do(t, s.Resume())
	for err := s.ask(t.Context()); err != nil; err = s.ask(t.Context()) {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func command(t *testing.T, s *Server, line string) string {
	t.Helper()
	c := must.Get(net.Dial("tcp", s.Addr()))(t)
	defer c.Close()
	must.Get(c.Write([]byte(line + "\r\n")))(t)
	reply := must.Get(bufio.NewReader(c).ReadString('\n'))(t)
	return strings.TrimSpace(reply)
}

// startAndWait is the other process of the next test: it starts a server, says where, and waits to be killed.
func startAndWait() {
	for _, d := range everyDatabase() {
		if d.Name != os.Getenv("TESTSERVER_CHILD") {
			continue
		}
		s, err := d.Launch(context.Background())
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(s.folder + " " + strconv.Itoa(s.proc.cmd.Process.Pid) + "\n")
	}
	select {}
}

// A test process that is killed cannot clean up: the watchdog does.
func TestServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	for _, d := range everyDatabase() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			d.Start(t) // or skip
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "TESTSERVER_CHILD="+d.Name)
			out := must.Get(cmd.StdoutPipe())(t)
			must.Do(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
			if err != nil {
				t.Fatal(err)
			}
			scratch, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
			group := must.Get(strconv.Atoi(pid))(t)
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				_, files := os.Stat(scratch)
				running := syscall.Kill(-group, 0)
				if errors.Is(files, os.ErrNotExist) && errors.Is(running, syscall.ESRCH) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("after its process was killed: files %v, process %v; want both gone", files, running)
				}
			}
		})
	}
}

// A server that the environment names is started in place of the installed one. If it cannot be, no other is.
func TestNamedServer(t *testing.T) {
	program := must.Get(find("sh"))(t)
	t.Setenv("TESTSERVER_REDIS", program)
	if !Redis.Installed() || Redis.program() != program {
		t.Errorf("got %s, want %s", Redis.program(), program)
	}
	for _, path := range []string{"/no/such/server", "sh", "./sh", "/"} {
		t.Setenv("TESTSERVER_REDIS", path)
		if _, err := Redis.setUp(required); err == nil || errors.Is(err, errMissing) || errors.Is(err, errNotNamed) {
			t.Errorf("%s: got error %v, want one that fails the test", path, err)
		}
	}
	t.Setenv("TESTSERVER_MYSQL", "")
	if _, err := MySQL.setUp(required); !errors.Is(err, errNotNamed) {
		t.Errorf("MySQL without a name: got error %v, want errNotNamed", err)
	}
}
