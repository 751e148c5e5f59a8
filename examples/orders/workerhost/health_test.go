package workerhost

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAskHealth(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-release
		case "/broken":
			http.Error(rw, "the main loop has been blocked", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	defer close(release)
	for path, want := range map[string]string{"/live": "", "/broken": "main loop", "/silent": "Timeout"} {
		err := AskHealth(server.URL + path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want an error about %q", path, err, want)
		}
	}
}

func TestServeHealth(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if stop, err := serveHealth("", nil, log); err != nil {
		t.Errorf("without an address: %v", err)
	} else {
		stop()
	}
	if _, err := serveHealth("127.0.0.1:no-port", nil, log); err == nil || !strings.Contains(err.Error(), "HEALTH_ADDR") {
		t.Errorf("a bad address: %v, want an error that names HEALTH_ADDR", err)
	}
}
