package emulator

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Emulator is one emulator at one version.
type Emulator struct {
	Name    string
	Version string

	// needs names the programs it needs, for people.
	needs string
	// install fills dir, which holds the emulator's assets and nothing else.
	install func(ctx context.Context, dir string) error
	// command returns the command that serves on the ports, which are free, and keeps its files below scratch.
	command func(dir, scratch string, ports []int) (*exec.Cmd, error)
	// ports is how many it takes. The first is the service's.
	ports int
	// probe is an operation without input which it answers once it is ready, as in X-Amz-Target.
	probe string
}

const (
	probeSQS      = "AmazonSQS.ListQueues"
	probeDynamoDB = "DynamoDB_20120810.ListTables"
)

// LocalStack is the last release that needs no account.
var LocalStack = &Emulator{
	Name: "localstack", Version: "4.14.0", needs: "Python 3.12 or 3.13",
	install: installPython, ports: 1, probe: probeSQS,
	command: func(dir, scratch string, ports []int) (*exec.Cmd, error) {
		cmd := exec.Command(python(dir), "-m", "localstack.runtime.main")
		cmd.Env = []string{
			"GATEWAY_LISTEN=127.0.0.1:" + strconv.Itoa(ports[0]), "SERVICES=sqs", "FILESYSTEM_ROOT=" + filepath.Join(scratch, "root"),
			"SKIP_SSL_CERT_DOWNLOAD=1", "DISABLE_EVENTS=1", "EAGER_SERVICE_LOADING=0", "DNS_ADDRESS=0",
			// Rules of AWS that it leaves out unless told.
			"SQS_ENABLE_MESSAGE_RETENTION_PERIOD=1", "SQS_DELAY_PURGE_RETRY=1", "SQS_DELAY_RECENTLY_DELETED=1",
		}
		return cmd, nil
	},
}

// ElasticMQ is written in Scala.
var ElasticMQ = &Emulator{
	Name: "elasticmq", Version: "1.7.1", needs: "Maven and Java 17",
	install: installMaven, ports: 1, probe: probeSQS,
	command: func(dir, _ string, ports []int) (*exec.Cmd, error) {
		port := strconv.Itoa(ports[0])
		return exec.Command("java", "-Xmx256m", "-Drest-sqs.bind-hostname=127.0.0.1", "-Drest-sqs.bind-port="+port,
			"-Dnode-address.host=127.0.0.1", "-Dnode-address.port="+port, "-Drest-stats.enabled=false",
			"-cp", filepath.Join(dir, "lib", "*"), "org.elasticmq.server.Main"), nil
	},
}

// Moto is a mock of AWS in Python.
var Moto = &Emulator{
	Name: "moto", Version: "5.2.5", needs: "Python 3.12 or 3.13",
	install: installPython, ports: 1, probe: probeSQS,
	command: func(dir, _ string, ports []int) (*exec.Cmd, error) {
		return exec.Command(python(dir), "-m", "moto.server", "-H", "127.0.0.1", "-p", strconv.Itoa(ports[0])), nil
	},
}

// Fauxqs is written in TypeScript. It runs with a clock that [Process.Advance] sets ahead.
var Fauxqs = &Emulator{
	Name: "fauxqs", Version: "1.9.2", needs: "npm and Node.js 20",
	install: installNode, ports: 2, probe: probeSQS,
	command: func(dir, _ string, ports []int) (*exec.Cmd, error) {
		cmd := exec.Command("node", filepath.Join(dir, "clock.mjs"))
		cmd.Env = []string{"PORT=" + strconv.Itoa(ports[0]), "CLOCK_PORT=" + strconv.Itoa(ports[1])}
		return cmd, nil
	},
}

// Dynoxide is a DynamoDB in Rust: one static program.
var Dynoxide = &Emulator{
	Name: "dynoxide", Version: "1.2.1", needs: "npm, on Linux with an x86-64 processor",
	install: installNode, ports: 1, probe: probeDynamoDB,
	command: func(dir, _ string, ports []int) (*exec.Cmd, error) {
		program := filepath.Join(dir, "node_modules", "@dynoxide", "linux-x64", "dynoxide")
		return exec.Command(program, "serve", "--host", "127.0.0.1", "-p", strconv.Itoa(ports[0])), nil
	},
}

// All returns every emulator.
func All() []*Emulator { return []*Emulator{LocalStack, ElasticMQ, Fauxqs, Moto, Dynoxide} }

// String returns name and version, as in messages and folder names.
func (e *Emulator) String() string { return e.Name + "-" + e.Version }
