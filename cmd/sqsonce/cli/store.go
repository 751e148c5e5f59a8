package cli

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
)

// hasStore says whether the records' place is known: a store of Options, the URL of one, or a table.
func (a *app) hasStore() bool {
	return a.opts.Store != nil || a.flags.store != "" || a.flags.table != ""
}

// openStore opens the store of the records, once.
func (a *app) openStore(ctx context.Context) (Store, error) {
	if a.store == nil {
		store, err := a.newStore(ctx)
		if err != nil {
			return nil, err
		}
		a.store = store
	}
	return a.store, nil
}

// able is what a command needs of a store that was opened, or an error: lacks, where the store does not have it.
func able[T any](store any, err, lacks error) (T, error) {
	of, ok := store.(T)
	if err == nil && !ok {
		err = lacks
	}
	return of, err
}

func (a *app) newStore(ctx context.Context) (Store, error) {
	switch {
	case a.opts.Store != nil:
		return a.opts.Store(ctx)
	case a.flags.store != "":
		return a.openURL(ctx)
	case a.flags.table == "":
		return nil, fail(exitUsage, "which table has the records? Set --table or SQSONCE_TABLE, or --store or SQSONCE_STORE")
	case strings.Contains(a.flags.table, "://"): // with a password, perhaps
		return nil, fail(exitUsage, "--table is a URL: set --store or SQSONCE_STORE")
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return dynamostore.New(s.dynamo, a.flags.table)
}

// storeCheck asks a store that is no table whether it can be used; nil: the records are in a table, or nobody said where.
func (a *app) storeCheck() func(context.Context) error {
	if a.opts.Store == nil && a.flags.store == "" {
		return nil
	}
	return func(ctx context.Context) error {
		store, err := a.openStore(ctx)
		if err != nil {
			return err
		}
		checked, ok := store.(interface{ Check(context.Context) error })
		if !ok {
			return errors.New("the store has no method Check")
		}
		return checked.Check(ctx)
	}
}

const (
	storeFlag    = "--store"
	hiddenSecret = "xxxxx" // as url.URL.Redacted
)

func (a *app) openURL(ctx context.Context) (Store, error) {
	u := parsedStore(a.flags.store)
	switch {
	case u == nil:
		return nil, fail(exitUsage, storeFlag+": not a URL. Escape special characters of a password: %%40 is @")
	case a.opts.StoreURL == nil:
		return nil, fail(exitUsage, storeFlag+": %s reads dynamodb:TABLE only. sqsonce-full also reads SQL databases and Redis", a.name())
	}
	store, err := a.opts.StoreURL(ctx, u)
	if err != nil {
		return nil, fail(exitUsage, storeFlag+": %s: %w", shownURL(a.flags.store), err)
	}
	return store, nil
}

// parsedStore is nil for a text that is not a URL, such as postgres:user:password@host. A parser's error may have the password.
func parsedStore(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Opaque != "" && u.Scheme != "dynamodb" {
		return nil
	}
	return u
}

// shownArgs are the arguments of a command as the audit and printed commands have them: URLs of stores without their secrets.
func shownArgs(args []string) []string {
	shown := make([]string, len(args))
	for i, arg := range args {
		if value, joined := strings.CutPrefix(arg, storeFlag+"="); joined {
			arg = storeFlag + "=" + shownURL(value)
		} else if i > 0 && args[i-1] == storeFlag {
			arg = shownURL(arg)
		}
		shown[i] = arg
	}
	return shown
}

// shownURL is a store's URL with xxxxx for its password, and for its parameters, which may have others.
func shownURL(text string) string {
	u := parsedStore(text)
	if u == nil {
		return hiddenSecret
	}
	if u.RawQuery != "" {
		u.RawQuery = hiddenSecret
	}
	u.Fragment, u.RawFragment = "", ""
	return u.Redacted()
}
