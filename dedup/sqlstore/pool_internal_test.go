package sqlstore

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
)

// Two handlers wait for connections that both keep. One is cancelled: with its connection the other one goes on.
func TestOneHandlerIsCancelledForAStuckPool(t *testing.T) {
	t.Parallel()
	db := must.Get(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "db")))(t)
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(2)
	p := &handlerPool{db: db}
	var watches []*poolWatch
	for range 2 {
		tx := must.Get(p.begin(t.Context()))(t)
		defer func() { _ = tx.Rollback() }()
		watches = append(watches, &poolWatch{pool: p, every: time.Hour, timer: time.NewTimer(time.Hour)})
	}
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if c, err := db.Conn(waiting); err == nil {
			_ = c.Close()
		}
	}()
	for db.Stats().WaitCount == 0 {
		time.Sleep(time.Millisecond)
	}
	cancelled := make([]int, 2)
	for i, w := range watches {
		w.cancel = func(error) { cancelled[i]++ }
	}
	for range 3 {
		for _, w := range watches {
			if cancelled[0]+cancelled[1] == 0 || w != watches[0] {
				w.look()
			}
		}
	}
	if cancelled[0] != 1 || cancelled[1] != 0 {
		t.Errorf("handlers cancelled %v times, want the first once: nobody has come to wait since", cancelled)
	}
}
