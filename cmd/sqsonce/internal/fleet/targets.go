package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
)

// Check returns a sqsonce.OptionError for each target that is none, joined.
func (f *Fleet) Check() error {
	var errs []error
	for _, target := range f.Targets {
		if problem := targetProblem(target); problem != "" {
			errs = append(errs, &sqsonce.OptionError{Package: "fleet", Field: fmt.Sprintf("worker %.256q", target), Problem: problem})
		}
	}
	return errors.Join(errs...)
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
		return "has a user: the handler knows none, and other processes would see the password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "has a query or a fragment: " + want
	case u.Port() != "" && !isPort(u.Port()):
		return "has no port of 1 to 65535"
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
		problem = "has no port of 1 to 65535"
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
			err := fmt.Errorf("it and what comes after it is not asked: %d processes are the limit", maxProcesses)
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
