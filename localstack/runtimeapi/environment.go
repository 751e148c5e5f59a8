package runtimeapi

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

const (
	functionName = "function"
	region       = "us-east-1"
	functionARN  = "arn:aws:lambda:" + region + ":000000000000:function:" + functionName
)

// environment is what Lambda sets, with credentials that no AWS account knows, and what the caller adds.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
func environment(bootstrap, api string, o Options) []string {
	env := []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=" + functionName,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(o.MemorySize),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + functionName,
		"AWS_LAMBDA_LOG_STREAM_NAME=local",
		"AWS_REGION=" + region,
		"AWS_DEFAULT_REGION=" + region,
		"AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=test",
		"_HANDLER=" + filepath.Base(bootstrap),
		"LAMBDA_TASK_ROOT=" + filepath.Dir(bootstrap),
		"TZ=:UTC",
		"LANG=en_US.UTF-8",
	}
	if o.PerProcess > 1 {
		env = append(env, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(o.PerProcess))
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, o.Env...) // of two with one name the last is taken
}

// serialized makes the writers safe for several processes. One lock for both: they may be the same.
func serialized(stdout, stderr io.Writer) (io.Writer, io.Writer) {
	var mu sync.Mutex
	wrap := func(w io.Writer) io.Writer {
		if w == nil {
			return nil
		}
		return &lockedWriter{mu: &mu, w: w}
	}
	return wrap(stdout), wrap(stderr)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
