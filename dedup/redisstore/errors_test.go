package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/redisstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Every error is of one of three kinds: away for every message, misconfigured for every message, or this record's.
func TestKindsOfErrors(t *testing.T) {
	t.Parallel()
	const unavailable, misconfigured, record = "unavailable", "misconfigured", "the record's"
	inScript := func(text string) refusal {
		return refusal("ERR Error running script (call to f_1): @user_script:15: @user_script: 15: " + text)
	}
	for _, tt := range []struct {
		kind    string
		problem error // nil: no *ServerError
		errs    []error
	}{
		{unavailable, nil, []error{
			refusal("LOADING Redis is loading the dataset in memory"), refusal("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
			refusal("NOREPLICAS Not enough good replicas to write."), refusal("CLUSTERDOWN The cluster is down"),
			refusal("TRYAGAIN Multiple keys request during rehashing of slot"), refusal("MOVED 3999 127.0.0.1:6381"), refusal("ASK 3999 127.0.0.1:6381"),
			refusal("BUSY Redis is busy running a script."), refusal("ERR max number of clients reached"), inScript("-CLUSTERDOWN The cluster is down"),
			&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}},
			&net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, io.EOF, io.ErrUnexpectedEOF,
			redis.ErrPoolTimeout, refusal("ERR internal error"), refusal("ERR max daily request limit exceeded. Limit: 10000, Usage: 10000."),
			inScript("attempt to perform arithmetic on a nil value"), context.DeadlineExceeded,
			errors.New("redis: all sentinels specified in configuration are unreachable"),
		}},
		{unavailable, redisstore.ErrReplica, []error{
			refusal("READONLY You can't write against a read only replica."), inScript("-READONLY You can't write against a read only replica."),
		}},
		{unavailable, redisstore.ErrMemory, []error{
			refusal("OOM command not allowed when used memory > 'maxmemory'."), inScript("-OOM command not allowed when used memory > 'maxmemory'."),
		}},
		{unavailable, redisstore.ErrDisk, []error{
			refusal("MISCONF Errors writing to the AOF file: No space left on device"),
		}},
		{misconfigured, redisstore.ErrAccessDenied, []error{
			refusal("NOAUTH Authentication required."), refusal("WRONGPASS invalid username-password pair or user is disabled."), refusal("ERR invalid password"),
			refusal("ERR Client sent AUTH, but no password is set"),
			refusal("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"),
			refusal("NOPERM this user has no permissions to run the 'evalsha' command"),
			inScript("The user executing the script can't run this command or subcommand"),
			refusal("DENIED Redis is running in protected mode because protected mode is enabled"),
		}},
		{misconfigured, redisstore.ErrCommand, []error{
			refusal("ERR unknown command 'EVALSHA'"), inScript("Unknown Redis command called from Lua script"),
			refusal("ERR Unknown Redis command called from script script: 1, on @user_script:4."), refusal("ERR DB index is out of range"),
			refusal("ERR invalid DB index"), refusal("ERR SELECT is not allowed in cluster mode"), refusal("ERR This instance has cluster support disabled"),
		}},
		{misconfigured, nil, []error{
			redis.ErrClosed,
		}},
		{record, nil, []error{
			refusal("WRONGTYPE Operation against a key holding the wrong kind of value"),
			inScript("WRONGTYPE Operation against a key holding the wrong kind of value"), fmt.Errorf("%w: x", dedup.ErrRecord),
		}},
	} {
		for _, err := range tt.errs {
			got := redisstore.Explain("acquire", fmt.Errorf("a caller's text: %w", err))
			kind := record
			switch {
			case errors.Is(got, sqsonce.ErrMisconfigured) && errors.Is(got, sqsonce.ErrUnavailable):
				kind = misconfigured
			case errors.Is(got, sqsonce.ErrUnavailable):
				kind = unavailable
			}
			serverErr, isServerError := errors.AsType[*redisstore.ServerError](got)
			if kind != tt.kind || isServerError != (tt.problem != nil) || isServerError && serverErr.Problem != tt.problem || !errors.Is(got, err) {
				t.Errorf("%q: got %q, which is %s, want %s with problem %v", err, got, kind, tt.kind, tt.problem)
			}
		}
	}
}

// refuser is a client of a server that answers a command with an error, or with OK where that is "".
func refuser(t *testing.T, answer func(command string) string) *redis.Client {
	t.Helper()
	l := testserver.Serve(t, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			command, err := readCommand(r)
			if err != nil {
				return
			}
			reply := "+OK"
			if text := answer(command); text != "" {
				reply = "-" + text
			}
			_, _ = io.WriteString(c, reply+"\r\n") // the next read fails too
		}
	})
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), ContextTimeoutEnabled: true, MaxRetries: -1})
	closeWith(t, client)
	return client
}

// readCommand reads an array of strings, and returns the first one.
func readCommand(r *bufio.Reader) (command string, err error) {
	size := 0
	if _, err := fmt.Fscanf(r, "*%d\r\n", &size); err != nil {
		return "", err
	}
	for n := range size {
		length := 0
		if _, err := fmt.Fscanf(r, "$%d\r\n", &length); err != nil {
			return "", err
		}
		text := make([]byte, length+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		if n == 0 {
			command = strings.ToLower(string(text[:length]))
		}
	}
	return command, nil
}

// Whatever a server answers to the login, to the question for its configuration or to a script is not an attempt of the message.
func TestUnlistedTexts(t *testing.T) {
	t.Parallel()
	texts := []string{
		"ERR This Redis command is not allowed from script script: f_1", "ERR internal error", "UNKILLABLE Sorry the script already executed write commands",
		"ERR max daily request limit exceeded. Limit: 10000", "ERR max request size exceeded", "ERR max concurrent connections exceeded",
		"upstream failure", "no upstream host", "Connection refused", "ERR Proxy error", "-", "ERR", "NOSCRIPT No matching script", "EXECABORT", "WAIT",
	}
	for _, r := range testserver.Refusals(100) {
		texts = append(texts, r.Text, r.Code+" "+r.Text)
	}
	for _, at := range []string{"hello", "info", "evalsha"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			var text atomic.Pointer[string]
			client := refuser(t, func(command string) string {
				switch {
				case command == at || command == "eval" || at == "hello" && command != "client":
					return *text.Load()
				case command == "hello":
					return "ERR unknown command 'hello'"
				}
				return ""
			})
			for n := range texts {
				text.Store(&texts[n])
				once := must.Get(dedup.New(newStore(t, client), "billing"))(t)
				err := once.Handler(func(context.Context, *sqsonce.Message) error {
					t.Errorf("%q: the handler ran", texts[n])
					return nil
				})(t.Context(), &sqsonce.Message{ID: fmt.Sprint(n), QueueARN: "arn:aws:sqs:us-east-1:1:q", ReceiveCount: 1})
				if kind := sqsonce.OutcomeOf(err).Kind; kind != sqsonce.OutcomeUnavailable {
					t.Errorf("%q: got %s, want unavailable: %v", texts[n], kind, err)
				}
			}
		})
	}
}
