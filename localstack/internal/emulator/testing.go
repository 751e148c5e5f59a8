package emulator

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Start returns the running emulator, which the first call in the process starts. Where it cannot run, the test is
// skipped or fails, as EMULATORS says. The package's TestMain must be [Main], which ends it.
func (e *Emulator) Start(t testing.TB) *Process {
	t.Helper()
	p, err := started.get(e)
	switch {
	case err == nil:
		return p
	case mode() == required:
		t.Fatalf("EMULATORS=%s, and %s cannot run: %v", required, e, err)
	default:
		t.Skipf("%s is not tested against: %v", e, err)
	}
	return nil
}

// Main runs the tests and ends the emulators that they started.
func Main(m *testing.M) {
	if err := checkMode(mode()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	if err := started.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	off      = "off"
	install  = "install"
	required = "required"
)

func mode() string { return os.Getenv("EMULATORS") }

// checkMode refuses a value that is a slip of the pen: taken for the default, it would skip what it meant to require.
func checkMode(m string) error {
	switch m {
	case "", off, install, required:
		return nil
	}
	return fmt.Errorf("emulator: EMULATORS=%s is neither empty nor %s nor %s nor %s", m, off, install, required)
}

// installTimeout is for one emulator on a slow line.
const installTimeout = 8 * time.Minute

// started are the emulators of this process.
var started = pool{entries: map[*Emulator]*entry{}}

type pool struct {
	mu      sync.Mutex
	entries map[*Emulator]*entry
}

type entry struct {
	once sync.Once
	p    *Process
	err  error
}

// get returns the emulator's process, or why there is none: the first answer is everyone's.
func (l *pool) get(e *Emulator) (*Process, error) {
	l.mu.Lock()
	x := l.entries[e]
	if x == nil {
		x = &entry{}
		l.entries[e] = x
	}
	l.mu.Unlock()
	x.once.Do(func() { x.p, x.err = e.bring(mode()) })
	return x.p, x.err
}

func (e *Emulator) bring(mode string) (*Process, error) {
	if mode == off {
		return nil, fmt.Errorf("EMULATORS=%s", off)
	}
	if mode == "" && !e.Installed() {
		return nil, fmt.Errorf("it is not installed; `make emulators` does that, with %s", e.needs)
	}
	// Of the process, not of the test that happens to come first.
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	if err := e.Install(ctx); err != nil {
		return nil, err
	}
	return e.launch(ctx)
}

func (l *pool) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e, x := range l.entries {
		if x.p == nil {
			continue
		}
		if err := x.p.stop(); err != nil {
			return fmt.Errorf("ending %s: %w", e, err)
		}
	}
	return nil
}
