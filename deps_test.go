package sqsonce_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sqsonce/sqsonce"

// vocabulary are the root and its own imports.
var vocabulary = []string{
	module, module + "/internal/settle", module + "/internal/guard", module + "/internal/question", module + "/internal/eventkey",
}

// dependencyRules say what packages may import, directly or through others, beyond the standard library and themselves.
// A rule holds for its package and those below it that have no rule of their own; test files are not counted.
var dependencyRules = []struct {
	pkg    string
	only   []string // paths; with "/..." those below too; nil: no such rule
	never  []string
	except []string // of never
	reason string
}{
	{
		pkg:    module,
		only:   vocabulary[1:],
		reason: "handlers import the vocabulary; it must not bring an SDK or a store with it",
	},
	{pkg: module + "/internal/settle", only: []string{}, reason: "the root imports it"},
	{pkg: module + "/internal/guard", only: []string{}, reason: "the root imports it"},
	{pkg: module + "/internal/question", only: []string{}, reason: "the root imports it"},
	{pkg: module + "/internal/eventkey", only: []string{}, reason: "the root imports it"},
	{pkg: module + "/internal/hook", only: []string{}, reason: "public packages that know little import it"},
	{pkg: module + "/internal/cut", only: []string{}, reason: "stores and outboxes import it, which know little else"},
	{
		pkg:    module + "/internal/host",
		only:   vocabulary,
		reason: "dedup imports it, which knows no SDK",
	},
	{
		pkg:    module + "/internal/deadletter",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/internal/cut", module + "/internal/sdkhttp", sdk + "/...", "github.com/aws/smithy-go/..."}),
		reason: "it needs the SQS client and the vocabulary",
	},
	{
		pkg:    module + "/dedup",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/internal/cut", module + "/internal/hook"}),
		reason: "the middleware knows neither the hosts nor the stores",
	},
	{
		pkg:    module + "/dedup/storetest",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/dedup", module + "/dedup/internal/...", module + "/internal/hook", module + "/internal/cut", module + "/internal/suite"}),
		reason: "the stores' suite knows the contract, and the runner that all suites share",
	},
	{
		pkg:    module + "/dedup/memstore",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/dedup", module + "/dedup/internal/...", module + "/internal/hook", module + "/internal/cut", module + "/limit", module + "/internal/counting"}),
		reason: "a store knows the contracts of records and limits",
	},
	{
		pkg:    module + "/dedup/internal/counter",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/dedup", module + "/internal/hook", module + "/internal/cut", module + "/limit", module + "/internal/counting"}),
		reason: "what counters share knows the contracts of records and limits",
	},
	{
		pkg:    module + "/limit",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/internal/counting"}),
		reason: "stores import it for their counters; it knows neither them nor a host",
	},
	{
		pkg:    module + "/internal/limittest",
		only:   slices.Concat(vocabulary, []string{module + "/internal/host", module + "/limit", module + "/internal/counting", module + "/dedup", module + "/internal/hook", module + "/internal/cut", module + "/internal/suite"}),
		reason: "the counters' suite knows the contract, and the runner that all suites share",
	},
	{
		pkg:    module + "/dedup/dynamostore",
		never:  []string{module + "/sqsworker/...", module + "/lambda/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/sqs/..."},
		reason: "a store knows its database and the contract",
	},
	{
		pkg:    module + "/sqsworker",
		never:  []string{module + "/dedup/...", module + "/lambda/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		reason: "hosts and middleware meet in the vocabulary alone: a worker runs without records",
	},
	{
		pkg:    module + "/lambda",
		never:  []string{module + "/dedup/...", module + "/sqsworker/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		reason: "hosts and middleware meet in the vocabulary alone; what a function links is paid at each cold start",
	},
	{
		pkg:    module + "/emf",
		never:  []string{module + "/dedup/...", module + "/sqsworker/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		except: []string{module + "/dedup"},
		reason: "it is for functions, and what a function links is paid at each cold start",
	},
	{
		pkg:    module + "/fifo",
		never:  []string{module + "/dedup/...", module + "/sqsworker/...", module + "/lambda/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		reason: "a producer needs no consumer's packages",
	},
	{
		pkg: module + "/fifo/outbox/dynamooutbox",
		never: []string{
			module + "/dedup/...", module + "/sqsworker/...", module + "/lambda/...", module + "/localstack/...",
			"github.com/aws/aws-lambda-go/...",
		},
		except: []string{"github.com/aws/aws-lambda-go/events"},
		reason: "an outbox knows its database and the events of its stream: neither records nor a host",
	},
	{
		pkg:    module + "/internal/ops",
		never:  []string{module + "/dedup/...", module + "/lambda/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		except: []string{module + "/dedup", module + "/fifo"},
		reason: "it asks any store by Inspect alone; a command with records in SQL links no DynamoDB",
	},
	{
		pkg:    module + "/status",
		never:  []string{module + "/dedup/...", module + "/lambda/...", module + "/localstack/...", module + "/internal/ops", sdk + "/service/dynamodb/..."},
		except: []string{module + "/dedup"},
		reason: "a worker with records in SQL or Redis, or with none, links no DynamoDB for its probes",
	},
	{
		pkg:    module + "/control",
		never:  []string{module + "/dedup/...", module + "/lambda/...", module + "/fifo/...", module + "/localstack/...", sdk + "/service/dynamodb/..."},
		except: []string{module + "/dedup"},
		reason: "a worker brings its own store, and status imports it",
	},
	{
		pkg:    module + "/internal/statusreport",
		only:   []string{},
		reason: "the command reads a worker's numbers without the worker's packages",
	},
	{
		pkg:    module + "/localstack",
		never:  []string{module + "/..."},
		except: []string{module + "/internal/suite"},
		reason: "the in-memory AWS must not share our rules, or it would share our bugs; only its suites share their runner",
	},
	{
		pkg:    module + "/internal/suite",
		only:   []string{},
		reason: "the runner of suites knows no rule of ours",
	},
	{
		pkg:    module + "/internal/proof/process",
		only:   []string{},
		reason: "it knows processes, and nothing of what they do",
	},
	{
		pkg:    module + "/internal/proof/netfault",
		only:   []string{},
		reason: "it knows no protocol, and the demo imports it",
	},
	{
		pkg:    module + "/internal/outboxmodel",
		only:   []string{},
		reason: "the protocol's model must not share our code, or it would share our bugs",
	},
}

const sdk = "github.com/aws/aws-sdk-go-v2"

func TestDependencies(t *testing.T) {
	t.Parallel()
	deps, standard := listDependencies(t)
	for pkg, imported := range deps {
		i := ruleOf(pkg)
		if i < 0 {
			continue
		}
		rule := dependencyRules[i]
		for _, dep := range imported {
			in := func(p string) bool { return matches(p, dep) }
			switch {
			case standard[dep]:
			case under(rule.pkg, dep) && ruleOf(dep) == i:
			case rule.only != nil && !slices.ContainsFunc(rule.only, in),
				slices.ContainsFunc(rule.never, in) && !slices.ContainsFunc(rule.except, in):
				t.Errorf("%s depends on %s: %s", pkg, dep, rule.reason)
			}
		}
	}
	if _, ok := deps[module]; !ok {
		t.Fatal("go list did not name the module's root: nothing was checked")
	}
}

// ruleOf returns the index of the longest rule that holds for pkg, or -1.
func ruleOf(pkg string) int {
	best := -1
	for i, r := range dependencyRules {
		// The root's rule is for the root alone: what lies below is everything else.
		if (r.pkg == pkg || r.pkg != module && under(r.pkg, pkg)) && (best < 0 || len(r.pkg) > len(dependencyRules[best].pkg)) {
			best = i
		}
	}
	return best
}

// matches reports whether pattern, a path or a path and "/..." for its whole tree, names dep.
func matches(pattern, dep string) bool {
	if dir, tree := strings.CutSuffix(pattern, "/..."); tree {
		return under(dir, dep)
	}
	return dep == pattern
}

func under(dir, pkg string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// listDependencies returns the dependencies of each package of the module, and which packages are the standard library's.
func listDependencies(t *testing.T) (deps map[string][]string, standard map[string]bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Deps", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	deps, standard = make(map[string][]string), make(map[string]bool)
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			ImportPath string
			Standard   bool
			Deps       []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return deps, standard
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if p.Standard {
			standard[p.ImportPath] = true
		} else if under(module, p.ImportPath) {
			deps[p.ImportPath] = p.Deps
		}
	}
}
