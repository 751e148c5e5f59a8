package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

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

// Whatever a server answers to the login, to the question for its configuration or to a script costs the message no attempt.
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
