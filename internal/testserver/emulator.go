package testserver

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Emulator is an emulator of an AWS service, at one version.
type Emulator struct {
	Name    string
	Version string

	// needs names the programs that it needs, for people.
	needs string
	// fill installs the emulator in dir, which has the emulator's assets and nothing else.
	fill func(ctx context.Context, dir string) error
	// command returns the command that serves on the port. Its files are below scratch.
	command func(dir, scratch, port string) *exec.Cmd
	// probe is an operation without input that it answers when it is ready, as in X-Amz-Target.
	probe string

	running shared[*Service]
}

const (
	probeSQS      = "AmazonSQS.ListQueues"
	probeDynamoDB = "DynamoDB_20120810.ListTables"
)

// LocalStack is the last release that needs no account.
var LocalStack = &Emulator{
	Name: "localstack", Version: "4.14.0", needs: needsPython,
	fill: installPython, probe: probeSQS,
	command: func(dir, scratch, port string) *exec.Cmd {
		cmd := exec.Command(python(dir), "-m", "localstack.runtime.main")
		cmd.Env = []string{
			"GATEWAY_LISTEN=" + Host + ":" + port, "SERVICES=sqs,sns,events", "FILESYSTEM_ROOT=" + filepath.Join(scratch, "root"),
			"SKIP_SSL_CERT_DOWNLOAD=1", "DISABLE_EVENTS=1", "EAGER_SERVICE_LOADING=0", "DNS_ADDRESS=0",
			// Rules of AWS that are off by default.
			"SQS_ENABLE_MESSAGE_RETENTION_PERIOD=1", "SQS_DELAY_PURGE_RETRY=1", "SQS_DELAY_RECENTLY_DELETED=1",
		}
		return cmd
	},
}

// Moto is a mock of AWS in Python.
var Moto = &Emulator{
	Name: "moto", Version: "5.2.5", needs: needsPython,
	fill: installPython, probe: probeSQS,
	command: func(dir, _, port string) *exec.Cmd {
		return exec.Command(python(dir), "-m", "moto.server", "-H", Host, "-p", port)
	},
}

// Dynoxide is a DynamoDB in Rust: one static program.
var Dynoxide = &Emulator{
	Name: "dynoxide", Version: "1.2.1", needs: "npm, on Linux with an x86-64 processor",
	fill: npmInstall, probe: probeDynamoDB,
	command: func(dir, _, port string) *exec.Cmd {
		program := filepath.Join(dir, "node_modules", "@dynoxide", "linux-x64", "dynoxide")
		return exec.Command(program, "serve", "--host", Host, "-p", port)
	},
}

// Emulators returns every emulator.
func Emulators() []*Emulator { return []*Emulator{LocalStack, Moto, Dynoxide} }

// String returns name and version, as in messages and folder names.
func (e *Emulator) String() string { return e.Name + "-" + e.Version }

// assets are the files that say what exactly is installed: lock files.
//
//go:embed assets
var assets embed.FS

func (e *Emulator) installation() installation {
	files, err := fs.Sub(assets, "assets/"+e.Name)
	if err != nil {
		panic(err) // the path is valid
	}
	return installation{name: "emulators/" + e.String(), files: files, fill: e.fill}
}

// Installed reports whether the emulator is installed, whole and from the assets of this package.
func (e *Emulator) Installed() bool { return e.installation().complete() }

// Install installs the emulator unless it is installed.
func (e *Emulator) Install(ctx context.Context) error {
	if _, err := e.installation().install(ctx); err != nil {
		return fmt.Errorf("testserver: installing %s, which needs %s: %w", e, e.needs, err)
	}
	return nil
}

// Service is a running emulator.
type Service struct {
	URL string

	name     string
	folder   string
	reserved io.Closer // the port
	proc     *process
}

// Shared returns the emulator that all tests of the process share, which the first call starts. Without one, the test is
// skipped or fails, as EMULATORS says. The package's TestMain must be [Main].
func (e *Emulator) Shared(t testing.TB) *Service {
	t.Helper()
	s, err := e.running.get(func() (*Service, error) { return e.setUp(mode()) })
	if err != nil {
		unavailable(t, mode(), e.String(), err)
	}
	return s
}

func (e *Emulator) setUp(mode string) (*Service, error) {
	// Not the context of the test: other tests share the emulator.
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if err := obtain(ctx, mode, e.needs, e); err != nil {
		return nil, err
	}
	return e.launch(ctx)
}

// obtain installs what is not installed, where EMULATORS says so.
func obtain(ctx context.Context, mode, needs string, s interface {
	Installed() bool
	Install(context.Context) error
}) error {
	switch {
	case mode == off:
		return fmt.Errorf("%w: EMULATORS=%s", errMissing, off)
	case mode == "" && !s.Installed():
		return fmt.Errorf("%w: it is not installed; `make emulators` installs it and needs %s", errMissing, needs)
	}
	if err := s.Install(ctx); err != nil {
		return fmt.Errorf("%w: %w", errMissing, err)
	}
	return nil
}

// emulatorTimeout is how long an emulator may take to be ready, on a machine that runs other tests.
const emulatorTimeout = 2 * time.Minute

// launch starts the emulator and waits until it answers.
func (e *Emulator) launch(ctx context.Context) (*Service, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, emulatorTimeout, fmt.Errorf("not ready after %v", emulatorTimeout))
	defer cancel()
	dir, err := e.installation().dir()
	if err != nil {
		return nil, err
	}
	s := &Service{name: e.String()}
	if err := s.start(ctx, e, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("testserver: starting %s: %w", e, err), s.Stop())
	}
	return s, nil
}

func (s *Service) start(ctx context.Context, e *Emulator, dir string) error {
	port, reserved, err := ReservePort()
	if err != nil {
		return err
	}
	s.reserved = reserved
	s.URL = localURL(port)
	if s.folder, err = os.MkdirTemp("", "testserver-"); err != nil {
		return err
	}
	if s.proc, err = startProcess(e.command(dir, s.folder, strconv.Itoa(port)), s.folder); err != nil {
		return err
	}
	if err := s.proc.await(ctx, func(ctx context.Context) error { return s.ask(ctx, e.probe) }); err != nil {
		return fmt.Errorf("%w; its log ends:\n%s", err, logEnd(s.folder))
	}
	return nil
}

func localURL(port int) string { return "http://" + Host + ":" + strconv.Itoa(port) }

// ask calls the operation of the probe.
func (s *Service) ask(ctx context.Context, probe string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	r.Header.Set("X-Amz-Target", probe)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Date", time.Now().UTC().Format("20060102T150405Z"))
	// No emulator verifies the signature, but some require one, and some read the service's name in it.
	service := "sqs"
	if probe == probeDynamoDB {
		service = "dynamodb"
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status of %s: %s", probe, resp.Status)
	}
	return nil
}

// Stop ends the emulator and removes its files.
func (s *Service) Stop() error {
	if s.proc != nil {
		s.proc.kill()
	}
	var errs []error
	if s.folder != "" {
		errs = append(errs, os.RemoveAll(s.folder))
	}
	if s.reserved != nil {
		errs = append(errs, s.reserved.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("testserver: stopping %s: %w", s.name, err)
	}
	return nil
}
