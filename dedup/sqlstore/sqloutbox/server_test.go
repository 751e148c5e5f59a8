package sqloutbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqlbed"
	"github.com/sqsonce/sqsonce/dedup/sqlstore/internal/sqldb"
	"github.com/sqsonce/sqsonce/fifo/outbox"
	"github.com/sqsonce/sqsonce/internal/must"
)

// The database's server dies while a relay publishes, and later stops answering for a while. What was committed before and
// after is published, in order, by the same relay.
func TestServerDies(t *testing.T) {
	t.Parallel()
	for _, kind := range servers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := openBed(t, kind, sqlbed.Own(t, kind))
			must.Do(t, Migrate(t.Context(), b.db, b.dialect))
			writer, o := b.outbox(t), b.outbox(t, func(o *Options) { o.Timeout = 500 * time.Millisecond })
			q := newQueue(t)
			ctx, stop := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			r := q.relay(t, o)
			go func() { ran <- r.Run(ctx) }()
			n := 0
			add := func() {
				t.Helper()
				for range 20 {
					n++
					b.commit(t, writer, event("g", fmt.Sprintf("%03d", n)))
				}
			}
			add()
			b.Server.Kill()
			time.Sleep(time.Second)
			b.Server.Restart(t)
			for end := time.Now().Add(20 * time.Second); b.db.PingContext(t.Context()) != nil && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
			}
			add()
			must.Do(t, b.Server.Pause())
			time.Sleep(2 * time.Second)
			must.Do(t, b.Server.Resume())
			add()
			for end := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				left, _, err := writer.Groups(t.Context(), "", 1)
				if err == nil && len(left) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the outbox is not empty: %v, %v; %+v", left, err, r.Stats())
				}
			}
			stop()
			must.Do(t, <-ran)
			all := q.receive(t)
			for i, m := range all {
				if want := fmt.Sprintf("body of %03d", i+1); aws.ToString(m.Body) != want {
					t.Fatalf("message %d is %q, want %q", i+1, aws.ToString(m.Body), want)
				}
			}
			if len(all) != n {
				t.Errorf("%d messages, want %d", len(all), n)
			}
		})
	}
}

// A refused statement ends a relay whose deletes it refuses. A refused login does not: a password that changes refuses it for a
// moment.
func TestLoginIsNoPermission(t *testing.T) {
	t.Parallel()
	check := func(d sqldb.Dialect, err error, denied bool) {
		t.Helper()
		if is := errors.Is(reporter.Unusable(d, sqldb.ErrAccessDenied, "", fmt.Errorf("delete: %w", err)), outbox.ErrDenied); is != denied {
			t.Errorf("%#v: ErrDenied is %t, want %t", err, is, denied)
		}
	}
	for code, denied := range map[string]bool{"28P01": false, "28000": false, "3D000": false, "42501": true, "42P01": true} {
		check(sqldb.PostgreSQL, &pgconn.PgError{Code: code}, denied)
	}
	for number, denied := range map[uint16]bool{1045: false, 1130: false, 4151: false, 1142: true, 1146: true} {
		check(sqldb.MySQL, &mysqldriver.MySQLError{Number: number}, denied)
	}
}
