package ecsprotect

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/sqsonce/sqsonce"
)

// Options are the settings of a [Guard].
type Options struct {
	// Most users set these first.

	// Most is how long a task is protected before its workers take no more messages. Its sum with your longest handler is how
	// long a deployment may take.
	// Default: 1 h. Limits: at most 12 h. A negative time is any time.
	Most time.Duration
	// After is how long a handler has run when the task is protected. A shorter one ends within a stop.
	// Default: the shortest StopTimeout of the workers less 10 s, at least 1 s. Limits: not negative.
	After time.Duration
	// Logger gets a line for each change, and for each call that failed.
	// Default: slog.Default().
	Logger *slog.Logger

	// The protection.

	// Open is how long ECS may stop the task then, before its workers take messages again.
	// Default: 1 min. Limits: at least 2 s.
	Open time.Duration
	// Expiry is when a protection ends that the Guard doesn't renew, in whole minutes. The Guard renews it at a third of it.
	// Default: 15 min. Limits: 3 min to 48 h, ECS's limit.
	Expiry time.Duration

	uri    string       // of ECS's agent: ECS_AGENT_URI. Without one, the Guard does nothing
	client *http.Client // each call ends after 10 s
}

func (o *Options) setDefaults() {
	o.Most = cmp.Or(o.Most, time.Hour)
	o.Open = cmp.Or(o.Open, time.Minute)
	o.Expiry = cmp.Or(o.Expiry, 15*time.Minute)
	o.uri = cmp.Or(o.uri, os.Getenv("ECS_AGENT_URI"))
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.client == nil {
		o.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: the agent's address is link-local
	}
}

func (o *Options) validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &sqsonce.OptionError{Package: "ecsprotect", Field: "Options." + field, Problem: fmt.Sprintf(format, args...)})
	}
	if o.After < 0 {
		bad("After", "is %s, must not be negative", o.After)
	}
	if o.Most > 12*time.Hour {
		bad("Most", "is %s, must be at most 12h", o.Most)
	}
	if o.Open < look {
		bad("Open", "is %s, must be at least %s", o.Open, look)
	}
	if o.Expiry < 3*time.Minute || o.Expiry > 48*time.Hour || o.Expiry%time.Minute != 0 {
		bad("Expiry", "is %s, must be whole minutes, 3 min to 48 h", o.Expiry)
	}
	if u, err := url.Parse(o.uri); o.uri != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		errs = append(errs, &sqsonce.OptionError{
			Package: "ecsprotect", Field: "ECS_AGENT_URI", Problem: fmt.Sprintf("is %q, must be the URL of the agent, such as http://169.254.170.2/api/ID", o.uri),
		})
	}
	return errors.Join(errs...)
}
