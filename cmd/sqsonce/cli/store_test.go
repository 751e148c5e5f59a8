package cli

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/internal/must"
)

// The pages of a console, and the commands that they run, use one store, and none of them writes the URL's secrets anywhere.
func TestConsoleStoreURL(t *testing.T) {
	bubble(t, func(w *world) {
		key, opened := w.put("e", dedup.StateCrashed), 0
		w.opts.StoreURL = func(_ context.Context, u *url.URL) (Store, error) {
			if opened++; u.Host != "host" {
				return nil, errors.New("another URL")
			}
			return w.store, nil
		}
		w.opts.Name = "mine"
		a := w.app("")
		a.flags.store = "mem://u:s3cret@host/d?key=s3cret#s3cret"
		p := &pages{ctx: w.Context(), app: a, services: must.Get(w.connect(w.Context()))(w)}
		if got := a.commandLine([]string{"top"}); got != "mine top" {
			t.Errorf("it prints %q", got)
		}
		if _, state, err := p.record(w.Context(), key); err != nil || state != dedup.StateCrashed {
			t.Errorf("the record is %s, %v", state, err)
		}
		var out, errs bytes.Buffer
		if code := p.command(w.Context(), &out, &errs, "record", "free", "--yes", key); code != 0 || opened != 1 {
			t.Errorf("exit %d, opened %d times: %s%s", code, opened, &out, &errs)
		}
		audit := must.Get(os.ReadFile(filepath.Join(w.folder, "sqsonce", auditFile)))(t)
		if printed := out.String() + errs.String() + string(audit); strings.Contains(printed, "s3cret") || !strings.Contains(printed, "--store=mem://u:xxxxx@host/d?xxxxx") {
			t.Errorf("it prints %s", printed)
		}
	})
}
