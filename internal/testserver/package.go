package testserver

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
)

// Package is a package of PyPI, Maven, npm or Debian at one version, for what is compared with programs that others wrote.
type Package struct {
	Name    string
	Version string

	folder string // below the cache folder
	needs  string // for people
	fill   func(ctx context.Context, dir string) error
}

// ExtendedClient is AWS's SQS client that keeps large bodies in S3, amazon-sqs-extended-client.
var ExtendedClient = &Package{Name: "extendedclient", Version: "1.0.1", folder: "python", needs: needsPython, fill: installPython}

// ExtendedClientJava is the same client in Java. Its jars are in lib.
var ExtendedClientJava = &Package{Name: "extendedclientjava", Version: "2.1.2", folder: "java", needs: "Maven and a JDK of Java 17", fill: installJDK}

// JavaSDK is the AWS SDK for Java 2, for SQS and DynamoDB. Its jars are in lib.
var JavaSDK = &Package{Name: "javasdk", Version: "2.35.10", folder: "java", needs: "Maven and a JDK of Java 17", fill: installJDK}

// Kombu is the messaging library of Celery, with boto3.
var Kombu = &Package{Name: "kombu", Version: "5.7.0", folder: "python", needs: needsPython, fill: installPython}

// NodeClients is the AWS SDK for JavaScript 3, at the version of its client of SQS, with sqs-consumer and ElectroDB.
var NodeClients = &Package{Name: "nodeclients", Version: "3.1169.0", folder: "node", needs: "npm and Node.js 20", fill: npmInstall}

// TypeScript is the compiler, with the AWS SDK's client of SQS.
var TypeScript = &Package{Name: "typescript", Version: "5.9.3", folder: "node", needs: "npm and Node.js 20", fill: npmInstall}

// MkDocs makes a site of docs: the theme mkdocs-material, with mkdocs.
var MkDocs = &Package{Name: "mkdocs", Version: "9.8.1", folder: "python", needs: needsPython, fill: installPython}

const needsPython = "Python 3.12 or 3.13"

// Packages returns every package.
func Packages() []*Package {
	return []*Package{ExtendedClient, ExtendedClientJava, JavaSDK, Kombu, NodeClients, TypeScript, MkDocs, Prometheus, AxeCore}
}

// String returns name and version, as in messages and folder names.
func (p *Package) String() string { return p.Name + "-" + p.Version }

func (p *Package) installation() installation {
	files, err := fs.Sub(assets, "assets/"+p.Name)
	if err != nil {
		panic(err) // the path is valid
	}
	return installation{name: p.folder + "/" + p.String(), files: files, fill: p.fill}
}

// Installed reports whether the package is installed, whole and from the assets of this package.
func (p *Package) Installed() bool { return p.installation().complete() }

// Install installs the package unless it is installed.
func (p *Package) Install(ctx context.Context) error {
	if _, err := p.installation().install(ctx); err != nil {
		return fmt.Errorf("testserver: installing %s, which needs %s: %w", p, p.needs, err)
	}
	return nil
}

// Dir returns the folder of the installation; a package of npm is in its node_modules. Without the package, the test is
// skipped or fails, as EMULATORS says.
func (p *Package) Dir(t testing.TB) string {
	t.Helper()
	dir, err := p.setUp(mode())
	if err != nil {
		unavailable(t, mode(), p.String(), err)
	}
	return dir
}

// Interpreter returns the path of the interpreter that has a package of PyPI, and skips as [Package.Dir] does.
func (p *Package) Interpreter(t testing.TB) string {
	t.Helper()
	return python(p.Dir(t))
}

// Python installs a package of PyPI unless it is installed, and returns the path of the interpreter that has it.
func (p *Package) Python(ctx context.Context) (string, error) {
	if err := p.Install(ctx); err != nil {
		return "", err
	}
	dir, err := p.installation().dir()
	if err != nil {
		return "", err
	}
	return python(dir), nil
}

func (p *Package) setUp(mode string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	if err := obtain(ctx, mode, p.needs, p); err != nil {
		return "", err
	}
	return p.installation().dir()
}

// Program returns the path of a program that is installed with an emulator in Python: with [LocalStack] the AWS CLI, aws, and
// python, which has boto3. It skips as [Package.Dir] does.
func (e *Emulator) Program(t testing.TB, name string) string {
	t.Helper()
	p := &Package{Name: e.Name, Version: e.Version, folder: "emulators", needs: e.needs, fill: e.fill}
	return filepath.Join(filepath.Dir(p.Interpreter(t)), name)
}
