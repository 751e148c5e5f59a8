package testserver

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
)

// Python is a package of PyPI at one version, for what is compared with programs written in Python.
type Python struct {
	Name    string
	Version string
}

// ExtendedClient is AWS's SQS client that keeps large bodies in S3, amazon-sqs-extended-client.
var ExtendedClient = &Python{Name: "extendedclient", Version: "1.0.1"}

const needsPython = "Python 3.12 or 3.13"

// String returns name and version, as in messages and folder names.
func (p *Python) String() string { return p.Name + "-" + p.Version }

func (p *Python) installation() installation {
	files, err := fs.Sub(assets, "assets/"+p.Name)
	if err != nil {
		panic(err) // the path is valid
	}
	return installation{name: "python/" + p.String(), files: files, fill: installPython}
}

// Installed reports whether the package is installed, whole and from the assets of this package.
func (p *Python) Installed() bool { return p.installation().complete() }

// Install installs the package unless it is installed.
func (p *Python) Install(ctx context.Context) error {
	if _, err := p.installation().install(ctx); err != nil {
		return fmt.Errorf("testserver: installing %s, which needs %s: %w", p, needsPython, err)
	}
	return nil
}

// Interpreter returns the path of the interpreter that has the package. Without the package, the test is skipped or fails, as
// EMULATORS says.
func (p *Python) Interpreter(t testing.TB) string {
	t.Helper()
	path, err := p.setUp(mode())
	if err != nil {
		unavailable(t, p.String(), err)
	}
	return path
}

func (p *Python) setUp(mode string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if err := obtain(ctx, mode, needsPython, p); err != nil {
		return "", err
	}
	dir, err := p.installation().dir()
	return python(dir), err
}
