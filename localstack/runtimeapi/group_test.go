//go:build unix

package runtimeapi_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// A function's name is in the ARN that it sees, and its children end with it.
func TestNameAndChildren(t *testing.T) {
	t.Parallel()
	x := start(t, func(o *runtimeapi.Options) { o.Env = []string{"AWS_LAMBDA_FUNCTION_NAME=orders"} })
	got := x.must(request{Do: "child"})
	if !strings.HasSuffix(got.ARN, ":function:orders") {
		t.Errorf("function ARN is %q", got.ARN)
	}
	child := must.Get(strconv.Atoi(got.Value))(t)
	must.Do(t, x.Close(context.Background()))
	for begin := time.Now(); syscall.Kill(child, 0) == nil && !zombie(child); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("the child of a closed function is alive")
		}
	}
}

// zombie reports whether a process has ended that its new parent has not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
