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
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
	"github.com/sqsonce/sqsonce/internal/host"
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
		return fmt.Errorf("no status handler at this URL: /%s is not a JSON object", page)
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
	case len(r.Limits) > maxListed:
		return fmt.Errorf("/stats lists more than %d rules", maxListed)
	}
	var all []statusreport.Stats
	for _, w := range r.Workers {
		all = append(all, w.Stats)
	}
	for _, l := range r.Limits {
		all = append(all, l.Stats)
	}
	for _, stats := range all {
		for name, v := range stats {
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

// Check returns a sqsonce.OptionError for each target that is none, joined.
func (f *Fleet) Check() error {
	p := host.Problems{Package: "fleet"}
	for _, target := range f.Targets {
		problem := targetProblem(target)
		p.Add(problem != "", fmt.Sprintf("worker %.256q", host.WithoutSecrets(target)), "%s", problem)
	}
	return p.Err()
}

func targetProblem(target string) string {
	const want = "must be a URL such as http://10.0.3.7:8080, or dns:HOST:PORT"
	if _, _, problem, ok := hostAndPort(target); ok {
		return problem
	}
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return want
	case u.User != nil:
		return "has a user name, which the status handler does not use, and other processes would see the password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "has a query or a fragment: " + want
	case u.Port() != "" && !isPort(u.Port()):
		return "needs a port from 1 to 65535"
	}
	return ""
}

// hostAndPort returns the parts of a dns: target, and false for any other.
func hostAndPort(target string) (host, port, problem string, ok bool) {
	rest, ok := strings.CutPrefix(target, "dns:")
	if !ok {
		return "", "", "", false
	}
	host, port, err := net.SplitHostPort(rest)
	switch {
	case err != nil || host == "" || strings.ContainsAny(host, "/@?# "):
		problem = "must be dns:HOST:PORT, such as dns:billing.internal:8080"
	case !isPort(port):
		problem = "needs a port from 1 to 65535"
	}
	return host, port, problem, true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// resolve returns the processes to ask. A target that cannot be resolved is one of them, with its error.
func (f *Fleet) resolve(ctx context.Context) []Worker {
	found := make([][]Worker, len(f.Targets))
	host.InParallel(len(f.Targets), atOnce, func(i int) { found[i] = f.addresses(ctx, f.Targets[i]) })
	var all []Worker
	seen := map[string]bool{}
	for _, w := range slices.Concat(found...) {
		if seen[w.URL] {
			continue
		}
		if seen[w.URL] = true; len(all) == maxProcesses {
			err := fmt.Errorf("it and later processes are not asked: the limit is %d processes", maxProcesses)
			all = append(all, Worker{URL: w.URL, Err: err})
			break
		}
		all = append(all, w)
	}
	return all
}

func (f *Fleet) addresses(ctx context.Context, target string) []Worker {
	host, port, problem, isDNS := hostAndPort(target)
	if !isDNS {
		problem = targetProblem(target)
	}
	if problem != "" {
		return []Worker{{URL: target, Err: errors.New(problem)}}
	}
	if !isDNS {
		return []Worker{{URL: strings.TrimRight(target, "/")}}
	}
	resolve := f.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := resolve(within, host)
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("the name was not resolved within %s", timeout)
	case err == nil && len(addrs) == 0:
		err = errors.New("the name has no address")
	}
	if err != nil {
		return []Worker{{URL: target, Err: err}}
	}
	addrs = slices.Clone(addrs)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	var workers []Worker
	for _, a := range addrs {
		u := url.URL{Scheme: "http", Host: net.JoinHostPort(a.String(), port)}
		workers = append(workers, Worker{URL: u.String()})
	}
	return workers
}
