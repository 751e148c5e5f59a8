package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/internal/host"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// network answers by host, in memory.
type network map[string]http.HandlerFunc

func (n network) RoundTrip(req *http.Request) (*http.Response, error) {
	h := n[req.URL.Host]
	if h == nil {
		return nil, errors.New("connection refused")
	}
	r, w := io.Pipe()
	head := make(chan *http.Response, 1)
	go func() {
		out := &pipeWriter{w: w, header: http.Header{}, head: head, body: r}
		h(out, req)
		out.WriteHeader(http.StatusOK)
		w.Close()
	}()
	stop := context.AfterFunc(req.Context(), func() { r.CloseWithError(req.Context().Err()) })
	select {
	case res := <-head:
		return res, nil
	case <-req.Context().Done():
		stop()
		r.CloseWithError(req.Context().Err())
		return nil, req.Context().Err()
	}
}

type pipeWriter struct {
	w      *io.PipeWriter
	body   io.ReadCloser
	header http.Header
	head   chan *http.Response
	done   bool
}

func (p *pipeWriter) Header() http.Header { return p.header }

func (p *pipeWriter) WriteHeader(code int) {
	if !p.done {
		p.done = true
		p.head <- &http.Response{StatusCode: code, Header: p.header, Body: p.body}
	}
}

func (p *pipeWriter) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.w.Write(b)
}

func answers(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, body)
	}
}

func reports(name string, started time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		const form = `{"v":1,"name":%q,"started":%q,"now":%q,"new_field":[1],` +
			`"workers":[{"queue":"orders","url":"https://q/1/orders","stats":{"done":3}}]}`
		answers("application/json; charset=utf-8", fmt.Sprintf(form, name, started.Format(time.RFC3339Nano), time.Now().Format(time.RFC3339Nano)))(w, r)
	}
}

func TestCheck(t *testing.T) {
	f := &Fleet{Targets: []string{
		"http://10.0.3.7:8080", "https://billing/status/", "http://[::1]:8080", "dns:billing.internal:8080", "dns:[::1]:8080",
		"", "billing:8080", "ftp://a", "http://", "http://:8080", "http://ann:secret@a", "http://a/?x=1", "http://a/#x", "http://a:0", "http://a:99999",
		"dns:billing", "dns::8080", "dns:a:http", "dns:a:0", "dns:http://a:80",
	}}
	err := f.Check()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 15 {
		t.Fatalf("%v", err)
	}
	for i, e := range joined.Unwrap() {
		if field, ok := errors.AsType[*sqsonce.OptionError](e); !ok || !strings.Contains(field.Field, fmt.Sprintf("%q", host.WithoutSecrets(f.Targets[5+i]))) || field.Problem == "" {
			t.Errorf("%q: %v", f.Targets[5+i], e)
		}
	}
	must.Do(t, (&Fleet{Targets: f.Targets[:5]}).Check())
}

// One that is away, slow, or answers with something else is an entry with its error; the others are there, and the order is that
// of the targets.
func TestBadWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		json := func(body string) http.HandlerFunc { return answers("application/json", body) }
		many := `{"v":1,"started":"2026-01-01T00:00:00Z","now":"2026-01-01T00:00:00Z","workers":[` + strings.TrimSuffix(strings.Repeat("{},", maxListed+1), ",") + `]}`
		bad := []struct {
			name string
			h    http.HandlerFunc
			says string
		}{
			{"away", nil, "connection refused"},
			{"silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer within 2s"},
			{"trickles", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for r.Context().Err() == nil {
					fmt.Fprint(w, " ")
					time.Sleep(100 * time.Millisecond)
				}
			}, "no answer within 2s"},
			{"endless", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte(strings.Repeat(" ", 64<<10))); err != nil {
						return
					}
				}
			}, "more than 1048576 bytes"},
			{"missing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "no status handler at this URL"},
			{"refuses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "status 503"},
			{"redirects", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://good/stats")
				w.WriteHeader(302)
			}, "redirects (302)"},
			{"page", answers("text/html", "<p>hello"), "not application/json"},
			{"garbage", json("\x00\xff{"), "not a JSON object"},
			{"array", json("[]"), "not a JSON object"},
			{"torn", json(`{"v":1,"name":"a`), "unexpected end"},
			{"more", json(`{"v":1}{"v":1}`), "after top-level value"},
			{"versionless", json(`{"name":"a"}`), "no version"},
			{"newer", json(`{"v":2,"workers":{"of":"another form"}}`), "version 2, and this program knows 1"},
			{"huge", json(`{"v":1,"workers":[{"stats":{"done":1e400}}]}`), "1e400"},
			{"great", json(`{"v":1,"started":"2026-01-01T00:00:00Z","now":"2026-01-01T00:00:00Z","workers":[{"stats":{"done":-1e21}}]}`), `"done" is -1e+21`},
			{"deep", json(`{"v":1,"x":` + strings.Repeat("[", 100000)), "exceeded max depth"},
			{"timeless", json(`{"v":1,"name":"a"}`), "does not say when"},
			{"many", json(many), "more than 1000 workers"},
		}
		net, f := network{"good": reports("good", start)}, &Fleet{}
		for _, b := range bad {
			f.Targets = append(f.Targets, "http://"+b.name)
			if b.h != nil {
				net[b.name] = b.h
			}
		}
		f.Targets, f.Client = append(f.Targets, "http://good"), &http.Client{Transport: net}
		workers := f.Stats(t.Context())
		if len(workers) != len(bad)+1 {
			t.Fatalf("%d workers", len(workers))
		}
		for i, b := range bad {
			if w := workers[i]; w.URL != "http://"+b.name || w.Report != nil || w.Err == nil || !strings.Contains(w.Err.Error(), b.says) {
				t.Errorf("%s: %+v", b.name, w)
			}
		}
		if w := workers[len(bad)]; w.Err != nil || w.Report.Name != "good" || w.Report.Workers[0].Stats[Done] != 3 || w.At.IsZero() {
			t.Errorf("%+v: %v", w, w.Err)
		}
		if took := time.Since(start); took > 2*timeout {
			t.Errorf("took %s", took)
		}
		time.Sleep(time.Second) // the handlers end
	})
}

// Not more than 16 are asked at once, and a cancelled context ends all.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		net, f := network{}, &Fleet{}
		for i := range 2*atOnce + 1 {
			host := fmt.Sprintf("w%d", i)
			f.Targets = append(f.Targets, "http://"+host)
			net[host] = func(w http.ResponseWriter, r *http.Request) {
				n := now.Add(1)
				defer now.Add(-1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Second)
				reports(host, time.Now())(w, r)
			}
		}
		f.Client = &http.Client{Transport: net}
		start := time.Now()
		f.Stats(t.Context())
		if most.Load() != atOnce || time.Since(start) != 3*time.Second {
			t.Errorf("%d at once, %s", most.Load(), time.Since(start))
		}
		answered := f.Stats(t.Context())
		most.Store(0)
		f.Running(t.Context(), answered)
		if most.Load() != longAtOnce {
			t.Errorf("%d long answers at once", most.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		for _, w := range f.Stats(ctx) {
			if !errors.Is(w.Err, context.DeadlineExceeded) {
				t.Errorf("%+v", w)
			}
		}
		if time.Since(start) != 100*time.Millisecond {
			t.Errorf("the end took %s", time.Since(start))
		}
		synctest.Wait()
		time.Sleep(time.Second) // the handlers end
	})
}

// A host is resolved each time; each address is a process, IPv6 too; one process at two addresses is listed once.
func TestDNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := time.Now(), time.Now().Add(time.Nanosecond)
		addrs := map[string]string{"billing": "fe80::1%eth0 10.0.0.2 fd00::1 ::ffff:10.0.0.1 10.0.0.2", "empty": ""}
		f := &Fleet{
			Targets: []string{"http://10.0.0.2:80", "dns:billing:80", "dns:gone:80", "dns:empty:80", "dns:slow:80"},
			Resolve: func(ctx context.Context, host string) (out []netip.Addr, err error) {
				if host == "slow" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				text, ok := addrs[host]
				if !ok {
					return nil, &net.DNSError{Err: "no such host", Name: host}
				}
				for _, a := range strings.Fields(text) {
					out = append(out, netip.MustParseAddr(a))
				}
				return out, nil
			},
			Client: &http.Client{Transport: network{"10.0.0.1:80": reports("a", one), "10.0.0.2:80": reports("a", two), "[fd00::1]:80": reports("a", one)}},
		}
		list := func() (out []string) {
			for _, w := range f.Stats(t.Context()) {
				text := w.URL
				if w.Err != nil {
					text += ": " + w.Err.Error()
				}
				out = append(out, text)
			}
			return out
		}
		rest := []string{
			"http://[fe80::1%25eth0]:80: connection refused", "dns:gone:80: lookup gone: no such host", "dns:empty:80: the name has no address", "dns:slow:80: the name was not resolved within 2s",
		}
		want := append([]string{"http://10.0.0.2:80", "http://10.0.0.1:80"}, rest...)
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
		addrs["billing"] = "fd00::1 fe80::1%eth0"
		want = append([]string{"http://10.0.0.2:80", "http://[fd00::1]:80"}, rest...)
		if got := list(); !slices.Equal(got, want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	})
}

func TestMostProcesses(t *testing.T) {
	f := &Fleet{
		Targets: []string{"dns:a:80"}, Client: &http.Client{Transport: network{}},
		Resolve: func(context.Context, string) (out []netip.Addr, _ error) {
			for i := range 2000 {
				out = append(out, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
			}
			return out, nil
		},
	}
	workers := f.Stats(t.Context())
	if n := len(workers); n != maxProcesses+1 || !strings.Contains(workers[n-1].Err.Error(), "the limit is 512 processes") {
		t.Errorf("%d workers", n)
	}
}

func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(name, body string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/running" {
					answers("application/json", body)(w, r)
					return
				}
				reports(name, time.Now())(w, r)
			}
		}
		f := &Fleet{Targets: []string{"http://a", "http://away", "http://b", "http://c"}, Client: &http.Client{Transport: network{
			"a": at("a", `{"v":1,"total":1,"running":[{"queue":"orders","message_id":"m","seconds":3,"stuck":true}]}`),
			"b": at("b", `{"v":1,"running":[`+strings.TrimSuffix(strings.Repeat("{},", maxListed+1), ",")+`]}`),
			"c": at("c", `{"v":3}`),
		}}}
		running := f.Running(t.Context(), f.Stats(t.Context()))
		if len(running) != 3 || running[0].Err != nil || running[0].Report.Running[0] != (statusreport.Running{Queue: "orders", MessageID: "m", Seconds: 3, Stuck: true}) {
			t.Fatalf("%+v", running)
		}
		for i, says := range []string{"more than 1000 handlers", "version 3"} {
			if r := running[i+1]; r.Report != nil || !strings.Contains(r.Err.Error(), says) {
				t.Errorf("%+v", r)
			}
		}
	})
}

// On a real server: a path before the pages, a redirect, an answer that is compressed to little.
func TestServer(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status/stats", reports("real", time.Now()))
	mux.Handle("GET /moved/stats", http.RedirectHandler("/status/stats", http.StatusFound))
	server := httptest.NewUnstartedServer(mux)
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		server.Listener = l
	} else {
		t.Log("no IPv6:", err)
	}
	server.Start()
	defer server.Close()
	u := must.Get(url.Parse(server.URL))(t)
	f := &Fleet{Targets: []string{server.URL + "/status/", server.URL + "/moved", server.URL, "dns:" + u.Host}}
	workers := f.Stats(t.Context())
	if w := workers[0]; w.Err != nil || w.Report.Name != "real" || w.URL != server.URL+"/status" {
		t.Errorf("%+v", w)
	}
	if len(workers) != 3 || workers[2].URL != server.URL { // the address of dns: is the same URL
		t.Fatalf("%+v", workers)
	}
	for i, says := range []string{"redirects (302)", "mounted under a path"} {
		if w := workers[i+1]; w.Err == nil || !strings.Contains(w.Err.Error(), says) {
			t.Errorf("%+v", w)
		}
	}
}
