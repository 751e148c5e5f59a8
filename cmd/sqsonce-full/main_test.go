package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/cmd/sqsonce/cli"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/sqlstore"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack"
)

const (
	asCommand = "SQSONCE_COMMAND" // makes the test's binary the command
	password  = "s3cret/@"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testserver.Main(m)
}

// run runs the command, and returns its exit code and what it printed.
func run(t *testing.T, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_ENDPOINT_URL_SQS=", "AWS_ENDPOINT_URL_DYNAMODB=", "AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	for _, printed := range []string{stdout.String(), stderr.String()} {
		if strings.Contains(printed, "s3cret") {
			t.Errorf("%q prints the password: %s", args, printed)
		}
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// prepared returns the URL of an empty store.
var prepared = map[string]func(t *testing.T) *url.URL{
	"postgres": func(t *testing.T) *url.URL {
		server := testserver.PostgreSQL.Shared(t)
		migrate(t, "pgx", server.DSN("postgres"), sqlstore.PostgreSQL)
		u := must.Get(url.Parse(server.DSN("postgres")))(t)
		u.User = url.UserPassword("postgres", password)
		return u
	},
	"mysql": func(t *testing.T) *url.URL {
		server := testserver.MariaDB.Shared(t)
		migrate(t, "mysql", server.DSN("test"), sqlstore.MySQL, "CREATE USER operator@'%' IDENTIFIED BY '"+password+"'", "GRANT ALL ON test.* TO operator@'%'")
		return &url.URL{Scheme: "mysql", User: url.UserPassword("operator", password), Host: server.Addr(), Path: "/test"}
	},
	"redis": func(t *testing.T) *url.URL {
		server := testserver.Redis.Start(t, func(o *testserver.Options) {
			o.Args = append(o.Args, "--user", "operator", "on", ">"+password, "~once_*", "+@all")
		})
		return &url.URL{Scheme: "redis", User: url.UserPassword("operator", password), Host: server.Addr(), Path: "/1"}
	},
}

func migrate(t *testing.T, driver, dsn string, dialect sqlstore.Dialect, statements ...string) {
	t.Helper()
	db := must.Get(sql.Open(driver, dsn))(t)
	defer db.Close()
	must.Do(t, sqlstore.Migrate(t.Context(), db, dialect.WithPrefix("once_")))
	for _, s := range statements {
		must.Get(db.ExecContext(t.Context(), s))(t)
	}
}

// The commands read and change the records of each store, and nothing that they print or write has the password.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, prepare := range prepared {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := prepare(t)
			u.RawQuery = strings.Trim(u.RawQuery+"&prefix=once_", "&")
			stack := must.Get(localstack.Start(t.Context(), func(o *localstack.Options) {
				o.Queues, o.HTTP = []localstack.Queue{{Name: "orders"}}, true
			}))(t)
			t.Cleanup(func() { _ = stack.Close(context.Background()) })
			sent := must.Get(stack.SQS.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(stack.QueueURL["orders-dlq"]), MessageBody: aws.String("b")}))(t)
			key := failOnce(t, must.Get(open(t.Context(), u))(t), &sqsonce.Message{ID: *sent.MessageId, Body: "b", ReceiveCount: 1, QueueARN: "arn:aws:sqs:us-east-1:000000000000:orders"})
			state := t.TempDir()
			env := []string{"AWS_ENDPOINT_URL=" + stack.URL, "XDG_STATE_HOME=" + state, "SQSONCE_STORE=" + u.String(), "SQSONCE_TABLE=none", "SQSONCE_CONSUMER=billing"}
			for _, test := range []struct{ args, says string }{
				{"record show " + key, "state\treleased"},
				{"dlq ls --queue orders --messages", key},
				{"dlq redrive --queue orders --all --yes --canary 0 --store " + u.String(), "redriven\t1"},
				{"record complete --yes " + key, "released\tcompleted"},
				{"record ls --state completed", key + "\tcompleted"},
				{"doctor", "ok\tS1\t"},
			} {
				if code, out, errs := run(t, env, strings.Fields(test.args)...); code != 0 || !strings.Contains(out, test.says) {
					t.Errorf("%s: exit %d, want %q: %s%s", test.args, code, test.says, out, errs)
				}
			}
			audit := must.Get(os.ReadFile(filepath.Join(state, "sqsonce", "audit.jsonl")))(t)
			if strings.Contains(string(audit), "s3cret") || !strings.Contains(string(audit), u.Scheme+"://") {
				t.Errorf("the audit: %s", audit)
			}
			wrong := *u
			wrong.User = url.UserPassword(u.User.Username(), "s3cret of another")
			if u.Scheme == "postgres" { // which trusts every password
				wrong.User = url.UserPassword("nobody", password)
			}
			if code, out, errs := run(t, env, "record", "show", "a", "--store", wrong.String()); code != 1 || strings.Count(errs, "\n") != 1 {
				t.Errorf("a wrong user: exit %d: %s%s", code, out, errs)
			}
			wrong.Host = "127.0.0.1:1"
			if code, out, errs := run(t, env, "doctor", "--store", wrong.String()); code != 4 || !strings.HasPrefix(out, "unknown\tS1\tcould not look: ") || !strings.Contains(out, "refused") {
				t.Errorf("no connection: exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// failOnce runs a consumer's handler once, which fails, and returns the key of the record.
func failOnce(t *testing.T, store cli.Store, m *sqsonce.Message) string {
	t.Helper()
	once := must.Get(dedup.New(store, "billing"))(t)
	failure := errors.New("card declined")
	if err := once.Handler(func(context.Context, *sqsonce.Message) error { return failure })(t.Context(), m); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	return must.Get(once.Key(m))(t)
}

// A URL that cannot be used is one line that names the flag, without the password.
func TestBadURLs(t *testing.T) {
	t.Parallel()
	for address, says := range map[string]string{
		"host/database":                            "not a URL",
		"postgres://u:s3cret@[host/d":              "not a URL",
		"postgres:u:s3cret@host/d":                 "not a URL",
		"mysql://u:s3cret%@host/d":                 "not a URL",
		"sqlite://u:s3cret@host/d":                 "none of dynamodb, mariadb, mysql, postgres, postgresql, redis, rediss",
		"postgres://u:s3cret@host:x/d":             "not a URL",
		"postgres://u:s3cret@host/d?sslmode=x":     "sslmode",
		"postgres://host/d?user=u&password=s3cret": "user:password@host",
		"postgres://host/d?%2f=s3cret&a=%zz":       "escaped",
		"postgres://u:s3cret@host/d?prefix=Once-":  "refix",
		"mysql://u:s3cret@host":                    "no host or no database",
		"mysql:///d":                               "no host or no database",
		"mysql://u:s3cret@host/d?timeout=x":        "invalid duration",
		"redis://u:s3cret@host/name":               "database number",
		"redis://u:s3cret@host/0?unknown=1":        "unknown",
	} {
		code, _, errs := run(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "record", "show", "a#b", "--store="+address)
		line, see, _ := strings.Cut(errs, "\n")
		if code != 2 || !strings.HasPrefix(line, "sqsonce-full: --store: ") || !strings.Contains(line, says) || see != "see: sqsonce-full record show --help\n" {
			t.Errorf("%s: exit %d, want %q: %s", address, code, says, errs)
		}
	}
}
