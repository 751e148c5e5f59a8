package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/realaws/account"
)

// part is a part of a run.
type part struct {
	name, test string // test is in package suites; "": the demo
	load       load
}

func partNames() (names []string) {
	for _, p := range allParts {
		names = append(names, p.name)
	}
	return names
}

func selectParts(list string) (selected []part, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(allParts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no part %q: -parts takes %s", name, strings.Join(partNames(), ","))
		}
		selected = append(selected, allParts[i])
	}
	return selected, nil
}

// runner runs parts.
type runner struct {
	account  *account.Account
	out      io.Writer
	patience time.Duration // of cases; 0: sqstest's default
	dir      string
}

// prepare compiles the suites.
func (r *runner) prepare(ctx context.Context) (err error) {
	if r.dir, err = os.MkdirTemp("", "sqsonce-aws-"); err != nil {
		return err
	}
	return r.command(exec.CommandContext(ctx, "go", "test", "-c", "-tags", "aws", "-o", r.suites(), "./suites"))
}

func (r *runner) suites() string { return filepath.Join(r.dir, "suites.test") }

func (r *runner) close() error { return os.RemoveAll(r.dir) }

// command runs a program to its end. Its error has the end of the program's output.
func (r *runner) command(cmd *exec.Cmd) error {
	interruptible(cmd)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text[max(0, len(text)-4000):])
	}
	return nil
}

// interruptible has the program end itself when the run is interrupted, before it is killed.
func interruptible(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
}

func (r *runner) run(ctx context.Context, p part) *result {
	fmt.Fprintf(r.out, "%s ...\n", p.name)
	res := &result{part: p.name, requests: map[string]int{}}
	if p.test == "" {
		res.problem = r.demo(ctx, res)
	} else {
		res.problem = r.tests(ctx, p.test, res)
	}
	fmt.Fprintln(r.out, res)
	return res
}

// tests runs a test of package suites in a process of its own, whose cases it adds to the result.
func (r *runner) tests(ctx context.Context, test string, res *result) error {
	env, err := r.environment(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.suites(), "-test.v=test2json", "-test.run=^"+test+"$", "-test.timeout=2h", "-test.parallel=8")
	interruptible(cmd)
	cmd.Env = append(env, account.PrefixVariable+"="+r.account.Guard.Prefix, account.PatienceVariable+"="+r.patience.String())
	held, err := cmd.StdinPipe() // the tests end where it does: with this process
	if err != nil {
		return err
	}
	defer held.Close()
	convert := exec.Command("go", "tool", "test2json")
	text, err := convert.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = text, text
	lines, err := convert.StdoutPipe()
	if err != nil {
		return err
	}
	if err := convert.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		ended <- errors.Join(err, text.Close())
	}()
	readErr := res.read(lines)
	runErr := <-ended
	if err := errors.Join(readErr, convert.Wait()); err != nil {
		return err
	}
	// Failed cases alone make status 1, and all tests have ended then.
	if exit, ok := errors.AsType[*exec.ExitError](runErr); ok && exit.ExitCode() == 1 && len(res.failed()) > 0 && res.open == 0 {
		return nil
	}
	if runErr != nil {
		return fmt.Errorf("%s: %w, %d tests did not end\n%s", test, runErr, res.open, res.output)
	}
	return nil
}

// environment is that of a program of the run: of AWS's variables it has the endpoints and what the account gives.
func (r *runner) environment(ctx context.Context) ([]string, error) {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "AWS_ENDPOINT_URL") && !strings.HasPrefix(v, "AWS_CA_BUNDLE=")
	})
	own, err := r.account.Environment(ctx)
	return append(append(env, "AWS_EC2_METADATA_DISABLED=true"), own...), err
}

// read reads the events of test2json.
func (res *result) read(r io.Reader) error {
	tests := map[string]*caseResult{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		if e.Test == "" {
			res.readLine(e.Output)
			continue
		}
		t := tests[e.Test]
		if t == nil {
			t = &caseResult{name: e.Test}
			tests[e.Test] = t
			for i, c := range e.Test { // a case's own name may have slashes
				if parent := tests[e.Test[:i]]; c == '/' && parent != nil {
					parent.parent = true
				}
			}
			res.cases = append(res.cases, t)
		}
		switch e.Action {
		case "output":
			if text := strings.TrimSpace(e.Output); !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
				t.output += e.Output
			}
		case "pass", "fail", "skip":
			t.status = e.Action
		}
	}
	res.open = len(res.with(""))
	res.cases = slices.DeleteFunc(res.cases, func(c *caseResult) bool { return c.parent && (c.status != "fail" || res.failsBelow(c.name)) })
	return lines.Err()
}

func (res *result) failsBelow(name string) bool {
	return slices.ContainsFunc(res.cases, func(c *caseResult) bool {
		return c.status != "pass" && c.status != "skip" && strings.HasPrefix(c.name, name+"/")
	})
}

func (res *result) readLine(text string) {
	if rest, ok := strings.CutPrefix(text, account.RequestsLine); ok {
		var service string
		var n int
		if _, err := fmt.Sscan(rest, &service, &n); err == nil {
			res.requests[service] = n
			return
		}
	}
	res.output += text
}
