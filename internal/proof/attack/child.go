package attack

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
)

// envHost is the environment variable that makes a process of the test binary a host. Its value is settings.
const envHost = "ATTACK_HOST"

type settings struct {
	Test  string // its name
	Place json.RawMessage
	Addr  string // of the store's server, for this host
	Inbox bool
}

// pattern selects the test and not its subtests, for -test.run.
func (s settings) pattern() string { return "^" + strings.ReplaceAll(s.Test, "/", "$/^") + "$" }

// delivery is what the parent writes to a host's standard input, as a line of JSON.
type delivery struct {
	Number int64
	Event  string
}

// serve is a host that is a process. It runs the deliveries that come on its standard input until that ends, also with the
// parent, and writes its notes to its standard output: each in one write, so that a kill leaves no half of one, and before
// the handler goes on.
func serve(t *testing.T, target Target, s settings) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	report := func(n note) {
		line, err := json.Marshal(n)
		if err == nil {
			_, err = os.Stdout.Write(append(line, '\n'))
		}
		if err != nil {
			panic(err) // a run without a note would not be checked
		}
	}
	h := newHost(t, target, s.Inbox, s.Addr, report)
	report(note{What: ready})
	var wg sync.WaitGroup
	defer wg.Wait()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var d delivery
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { h.deliver(d.Number, d.Event) })
	}
}
