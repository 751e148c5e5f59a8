package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

// isCommand is the environment variable that makes this program the command instead of its tests.
const isCommand = "REALAWS_TEST_IS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(isCommand) != "" {
		main()
		return
	}
	testserver.Main(m)
}

// The tag's files are compiled by no other test without emulators.
func TestSuitesCompile(t *testing.T) {
	t.Parallel()
	if text, err := exec.CommandContext(t.Context(), "go", "vet", "-tags", "aws", "./suites").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// The tests of a run end when it does, however it ends: its end of their input is closed then. Here they wait for an STS that
// does not answer.
func TestSuitesEndWithTheRun(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer silent.Close()
	file := filepath.Join(t.TempDir(), "suites.test")
	if text, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "aws", "-o", file, "./suites").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	url := "http://" + silent.Addr().String()
	cmd := exec.CommandContext(t.Context(), file)
	cmd.Env = append(newFakeAWS(url, url, url).env, account.PrefixVariable+"="+account.NewPrefix())
	input, err := cmd.StdinPipe()
	ok(t, err)
	ok(t, cmd.Start())
	ok(t, input.Close())
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("ended with %v, want status 3", err)
	}
}

// The prices are those of docs/cost.md.
func TestPrices(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs/cost.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"S": priceStandard, "F": priceFIFO, "W": priceWrite, "R": priceRead} {
		m := regexp.MustCompile(`(?m)^\| ` + name + ` \| ([0-9.]+) \| a million`).FindSubmatch(text)
		if m == nil {
			t.Errorf("docs/cost.md has no price %s", name)
			continue
		}
		if got, err := strconv.ParseFloat(string(m[1]), 64); err != nil || got != want {
			t.Errorf("price %s: docs/cost.md has %s, the estimate %v", name, m[1], want)
		}
	}
	if priceFIFO < priceStandard {
		t.Error("the dearer price must be the one that is taken for all requests")
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printEstimate(&out, []part{{name: "a", load: load{sqs: 1e6}}, {name: "b", load: load{writes: 2e6, reads: 1e6, other: 0.25}}})
	for _, want := range []string{"at most 2.12 dollars", "0.500", "1.625"} { // F, and 2 W + R + 0.25
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// Nothing but yes goes on: no answer is none.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"yes\n": true, " yes": true, "y\n": false, "no\n": false, "\n": false, "": false, "yes please\n": false} {
		var out bytes.Buffer
		if err := (options{}).confirm(t.Context(), strings.NewReader(answer), &out); (err == nil) != want {
			t.Errorf("%q: got error %v, want to go on: %t", answer, err, want)
		}
	}
	if err := (options{yes: true}).confirm(t.Context(), strings.NewReader("no\n"), &bytes.Buffer{}); err != nil {
		t.Errorf("with -yes: %v", err)
	}
}

// An interrupt at the question is a no, also after a yes.
func TestInterruptAtTheQuestion(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, answer := io.Pipe()
	defer answer.Close()
	for _, in := range []io.Reader{silent, strings.NewReader("yes\n")} {
		if err := (options{}).confirm(ctx, in, io.Discard); err == nil || !strings.Contains(err.Error(), "interrupted: nothing was done") {
			t.Errorf("got error %v", err)
		}
	}
}

// What is no option is not left out: it may have been meant to say what to delete. Nothing is listening at the endpoints.
func TestArguments(t *testing.T) {
	t.Parallel()
	const nowhere = "http://127.0.0.1:1"
	for _, args := range [][]string{{"-clean", "sqsonce-aws-00000001-"}, {"sqs"}} {
		out, _, err := newFakeAWS(nowhere, nowhere, nowhere).run(t, "yes\n", args...)
		if err == nil || !strings.Contains(out, "is not an option") {
			t.Errorf("%v: error %v\n%s", args, err, out)
		}
	}
}

// A pipe without a reader ends no run before the deletion.
func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	file, err := os.Executable()
	ok(t, err)
	read, write, err := os.Pipe()
	ok(t, err)
	ok(t, read.Close())
	defer write.Close()
	cmd := exec.CommandContext(t.Context(), file, "no-option")
	cmd.Env, cmd.Stderr = append(os.Environ(), isCommand+"=1"), write
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("ended with %v, want status 1", err)
	}
}

// A suite that was cut did not run to its end, also where a case had failed before; one that ended has cases that differ.
func TestCutSuite(t *testing.T) {
	t.Parallel()
	const (
		begin = "#!/bin/sh\ncat <<E\n\x16=== RUN   TestSQS\n\x16=== RUN   TestSQS/a\n\x16--- FAIL: TestSQS/a (0.00s)\n"
		end   = "\x16--- FAIL: TestSQS (0.00s)\n\x16=== NAME  \n\x16FAIL\n"
	)
	for script, cut := range map[string]bool{
		begin + end + "E\nexit 1\n":                           false,
		strings.ReplaceAll(begin+end, "FAIL", "PASS") + "E\n": false,
		begin + end + "E\nexit 3\n":                           true,
		begin + end + "E\nkill -9 $$\n":                       true,
		begin + "\x16=== RUN   TestSQS/b\nE\nexit 1\n":        true,
		begin + "\x16=== NAME  TestSQS\nE\nexit 1\n":          true, // between two cases
		"#!/bin/sh\necho no credentials\nexit 1\n":            true,
	} {
		r := &runner{account: (&answers{}).account(), dir: t.TempDir()}
		ok(t, os.WriteFile(r.suites(), []byte(script), 0o755))
		res := &result{part: "sqs", requests: map[string]int{}}
		if err := r.tests(t.Context(), "TestSQS", res); (err != nil) != cut {
			t.Errorf("error %v, want one: %t, of\n%s", err, cut, script)
		}
	}
}

func TestSelectParts(t *testing.T) {
	t.Parallel()
	if p, err := selectParts("store,sqs"); err != nil || len(p) != 2 || p[0].name != "store" {
		t.Errorf("got %v, error %v", p, err)
	}
	for _, list := range []string{"", "sqs,", "SQS", "all"} {
		if _, err := selectParts(list); err == nil {
			t.Errorf("%q: got no error", list)
		}
	}
}

const events = `{"Action":"start"}
{"Action":"run","Test":"TestSQS"}
{"Action":"output","Test":"TestSQS","Output":"=== RUN   TestSQS\n"}
{"Action":"run","Test":"TestSQS/a/1"}
{"Action":"run","Test":"TestSQS/b"}
{"Action":"output","Test":"TestSQS/b","Output":"    suite.go:82: got a queue 123456789012/q, want an error\n"}
{"Action":"output","Test":"TestSQS/b","Output":"    --- FAIL: TestSQS/b (0.01s)\n"}
{"Action":"fail","Test":"TestSQS/b"}
{"Action":"run","Test":"TestSQS/c"}
{"Action":"output","Test":"TestSQS/c","Output":"    suite.go:75: 5m0s pass\n"}
{"Action":"skip","Test":"TestSQS/c"}
{"Action":"run","Test":"TestSQS/d"}
{"Action":"pass","Test":"TestSQS/a/1"}
{"Action":"fail","Test":"TestSQS"}
{"Action":"output","Output":"requests sent to sqs 42\n"}
{"Action":"output","Output":"something else\n"}
`

func TestReport(t *testing.T) {
	t.Parallel()
	res := &result{part: "sqs", requests: map[string]int{}}
	if err := res.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r := &report{region: "eu-west-1", account: "123456789012"}
	r.add(res)
	r.add(&result{part: "demo", skipped: "no functions here"})
	got := r.markdown()
	for _, want := range []string{
		"| sqs | 1 | 2 | 1 | sqs 42 |", "| demo | - | - | **skipped** | |",
		"### TestSQS/b\n\n```\n    suite.go:82: got a queue 111122223333/q, want an error\n```\n",
		"### TestSQS/d\n\n```\ndid not end\n```\n", "Not run, since: 5m0s pass\n\n- TestSQS/c\n", "Skipped: no functions here",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	for _, never := range []string{"123456789012", "TestSQS/a", "### TestSQS\n", "not AWS"} {
		if strings.Contains(got, never) {
			t.Errorf("want no %q in\n%s", never, got)
		}
	}
	if err := r.problem(); err == nil || !strings.Contains(err.Error(), "2 cases differ") {
		t.Errorf("got error %v, want one about two cases", err)
	}
	if res.output != "something else\n" {
		t.Errorf("output %q", res.output)
	}
}

// A run that could not go on has failed, and a report from elsewhere than AWS says so.
func TestReportOfOtherRuns(t *testing.T) {
	t.Parallel()
	r := &report{region: "eu-west-1", account: "123456789012", endpoints: []string{"AWS_ENDPOINT_URL=http://127.0.0.1:1"}}
	r.add(&result{part: "sqs", problem: fmt.Errorf("killed")})
	if err := r.problem(); err == nil {
		t.Error("got no error for a part that did not run to its end")
	}
	if got := r.markdown(); !strings.Contains(got, "**This was not AWS:** AWS_ENDPOINT_URL=http://127.0.0.1:1") || !strings.Contains(got, "killed") {
		t.Error(got)
	}
	r = &report{account: "123456789012"}
	r.add(&result{part: "sqs", cases: []*caseResult{{name: "a", status: "pass"}, {name: "b", status: "skip"}}})
	if err := r.problem(); err != nil {
		t.Errorf("got error %v for a good run", err)
	}
}
