package onewrite

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// conn counts writes.
type conn struct {
	net.Conn
	writes *atomic.Int64
}

func (c conn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// wrapped is a body as the SDK makes them: net/http cannot know what is in it.
type wrapped struct {
	io.Reader
	closed bool
}

func (w *wrapped) Close() error {
	w.closed = true
	return nil
}

func request(t *testing.T, url string, body io.ReadCloser, length int64) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = length
	return r
}

func TestWrites(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(echo.Close)
	for _, c := range []struct {
		name string
		size int
		raw  bool
		want int64
	}{
		{name: "as the SDK sends it", size: 1000, raw: true, want: 2},
		{name: "small", size: 1000, want: 1},
		{name: "longest", size: most, want: 1},
		{name: "too long", size: most + 1, want: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var writes atomic.Int64
			transport := &http.Transport{
				WriteBufferSize: 2 * most,
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					nc, err := new(net.Dialer).DialContext(ctx, network, addr)
					return conn{nc, &writes}, err
				},
			}
			t.Cleanup(transport.CloseIdleConnections)
			var next aws.HTTPClient = &http.Client{Transport: transport}
			if !c.raw {
				next = Client(next)
			}
			text := strings.Repeat("x", c.size)
			body := &wrapped{Reader: strings.NewReader(text)}
			resp, err := next.Do(request(t, echo.URL, body, int64(c.size)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if string(got) != text {
				t.Errorf("sent %d bytes, %d arrived, or others", len(text), len(got))
			}
			if !body.closed {
				t.Error("the body was not closed")
			}
			if writes.Load() != c.want {
				t.Errorf("%d writes, want %d", writes.Load(), c.want)
			}
		})
	}
}

// next records what it gets.
type next struct{ got *http.Request }

func (n *next) Do(r *http.Request) (*http.Response, error) {
	n.got = r
	return nil, errors.ErrUnsupported
}

func TestRequestStaysItsCallers(t *testing.T) {
	t.Parallel()
	body := &wrapped{Reader: strings.NewReader("body")}
	r := request(t, "http://aws.local/", body, 4)
	r.GetBody = func() (io.ReadCloser, error) { return body, nil }
	var n next
	if _, err := Client(&n).Do(r); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v, want the client's", err)
	}
	if r.Body != io.ReadCloser(body) || r.GetBody == nil {
		t.Error("the caller's request was changed")
	}
	if n.got.GetBody != nil {
		t.Error("net/http may repeat the request by itself")
	}
	if n.got.Context() != r.Context() || n.got.Method != r.Method || n.got.URL != r.URL {
		t.Error("the request is not the caller's")
	}
}

func TestBodiesLeftAlone(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*http.Request{
		"none":           request(t, "http://aws.local/", nil, 0),
		"length unknown": request(t, "http://aws.local/", &wrapped{Reader: strings.NewReader("x")}, -1),
	} {
		var n next
		_, _ = Client(&n).Do(r)
		if n.got != r {
			t.Errorf("body %s: the request was copied", name)
		}
	}
}

// TestBrokenBody: nothing is sent of a body that is not as long as it says.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		body io.Reader
		want error
	}{
		"short": {strings.NewReader("abc"), io.ErrUnexpectedEOF},
		"error": {iotest.ErrReader(broken), broken},
	} {
		body := &wrapped{Reader: c.body}
		var n next
		_, err := Client(&n).Do(request(t, "http://aws.local/", body, 4))
		if !errors.Is(err, c.want) || n.got != nil || !body.closed {
			t.Errorf("%s: error %v, want %v; sent: %t; closed: %t", name, err, c.want, n.got != nil, body.closed)
		}
	}
}
