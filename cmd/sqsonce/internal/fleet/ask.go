package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// get reads the JSON of a page of a status.Handler into v.
func (f *Fleet) get(ctx context.Context, base, page string, limit int64, v any) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f.read(within, base, page, limit, v)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if err != nil {
		err = awserr.Cause(err)
	}
	return err
}

func (f *Fleet) read(ctx context.Context, base, page string, limit int64, v any) error {
	u, err := url.JoinPath(base, page)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	client := *cmp.Or(f.Client, &http.Client{})
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("no status handler at this URL: /%s is not there (404). Is it mounted under a path?", page)
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("/%s redirects (%d), which is not followed: use the URL of the handler itself", page, res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("/%s is answered with status %d", page, res.StatusCode)
	case kind != "application/json":
		return fmt.Errorf("no status handler at this URL: /%s is %.80q and not application/json", page, kind)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return fmt.Errorf("/%s ended early: %w", page, err)
	}
	if int64(len(body)) > limit {
		return fmt.Errorf("/%s has more than %d bytes", page, limit)
	}
	return decode(body, page, v)
}

// decode looks at the version first: a newer form may not fit the types of this one.
func decode(body []byte, page string, v any) error {
	var head struct {
		V *int `json:"v"`
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return fmt.Errorf("no status handler at this URL: /%s is no JSON object", page)
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("/%s: %w", page, err)
	}
	switch {
	case head.V == nil || *head.V < 1:
		return fmt.Errorf("no status handler at this URL: the JSON of /%s has no version", page)
	case *head.V > statusreport.Version:
		return fmt.Errorf("/%s has version %d, and this program knows %d: use a newer sqsonce", page, *head.V, statusreport.Version)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("/%s: %w", page, err)
	}
	return nil
}

func checkReport(r *statusreport.Report) error {
	switch {
	case r.Started.IsZero() || r.Now.IsZero():
		return errors.New("/stats does not say when its process started, or what time it is there")
	case len(r.Workers) > maxListed:
		return fmt.Errorf("/stats lists more than %d workers", maxListed)
	}
	for _, w := range r.Workers {
		for name, v := range w.Stats {
			if math.Abs(v) > maxFigure { // sums and rates of others would be infinite, which JSON cannot have
				return fmt.Errorf("/stats says that %.80q is %g", name, v)
			}
		}
	}
	return nil
}

func checkRunning(r *statusreport.RunningReport) error {
	if len(r.Running) > maxListed {
		return fmt.Errorf("/running lists more than %d handlers", maxListed)
	}
	return nil
}
