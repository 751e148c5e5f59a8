package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/esm"
	"github.com/sqsonce/sqsonce/localstack/runtimeapi"
)

// lambdaOperations are the calls of Lambda's API that localaws answers, by name.
var lambdaOperations = map[string]struct {
	pattern string
	handle  func(*functions, http.ResponseWriter, *http.Request) error
}{
	"Invoke":                   {"POST /2015-03-31/functions/{name}/invocations", (*functions).invoke},
	"ListFunctions":            {"GET /2015-03-31/functions", (*functions).list},
	"GetFunction":              {"GET /2015-03-31/functions/{name}", (*functions).get},
	"GetFunctionConfiguration": {"GET /2015-03-31/functions/{name}/configuration", (*functions).getConfiguration},
	"GetFunctionConcurrency":   {"GET /2019-09-30/functions/{name}/concurrency", (*functions).getConcurrency},
	"ListEventSourceMappings":  {"GET /2015-03-31/event-source-mappings", (*functions).listMappings},
	"GetEventSourceMapping":    {"GET /2015-03-31/event-source-mappings/{id}", (*functions).getMapping},
	"UpdateEventSourceMapping": {"PUT /2015-03-31/event-source-mappings/{id}", (*functions).updateMapping},
}

var lambdaPath = regexp.MustCompile(`^/20\d\d-\d\d-\d\d/`)

// isLambda reports whether a request is for Lambda, whose operations have a path that begins with a date.
func isLambda(r *http.Request) bool { return lambdaPath.MatchString(r.URL.Path) }

func (fs *functions) handler() http.Handler {
	mux := http.NewServeMux()
	for _, o := range lambdaOperations {
		mux.HandleFunc(o.pattern, func(rw http.ResponseWriter, r *http.Request) {
			if err := o.handle(fs, rw, r); err != nil {
				writeLambdaError(rw, err)
			}
		})
	}
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		writeLambdaError(rw, &lambdaError{http.StatusNotImplemented, "UnknownOperationException", fmt.Sprintf(
			"localaws does not implement %s %s of Lambda; it has %s. Functions come from -template, -config and -function.",
			r.Method, r.URL.Path, strings.Join(slices.Sorted(maps.Keys(lambdaOperations)), ", "))})
	})
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/") // older clients ask with one
		mux.ServeHTTP(rw, r)
	})
}

// lambdaError is an error of Lambda's API.
type lambdaError struct {
	status     int
	code, text string
}

func (e *lambdaError) Error() string { return e.code + ": " + e.text }

func invalidParameter(format string, args ...any) error {
	return &lambdaError{http.StatusBadRequest, "InvalidParameterValueException", fmt.Sprintf(format, args...)}
}

func writeLambdaError(rw http.ResponseWriter, err error) {
	e, ok := errors.AsType[*lambdaError](err)
	if !ok {
		e = &lambdaError{http.StatusInternalServerError, "ServiceException", err.Error()}
	}
	rw.Header().Set("X-Amzn-Errortype", e.code)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(e.status)
	_ = json.NewEncoder(rw).Encode(map[string]string{"Type": "User", "Message": e.text}) // the client disconnected
}

func (w *world) functionARN(name string) string {
	return w.o.home().ARN("lambda", "function:"+name)
}

func (fs *functions) named(r *http.Request) (*function, error) {
	name := plan.FunctionName(r.PathValue("name"))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.all[name]; f != nil {
		return f, nil
	}
	return nil, &lambdaError{http.StatusNotFound, "ResourceNotFoundException", "Function not found: " + fs.w.functionARN(name)}
}

// configuration is a FunctionConfiguration.
func (fs *functions) configuration(f *function) map[string]any {
	state, reason := "Active", ""
	if f.process == nil {
		state, reason = "Inactive", errNoBootstrap.Error()
	}
	env := f.Env
	if env == nil {
		env = map[string]string{}
	}
	return map[string]any{
		"FunctionName": f.Name, "FunctionArn": fs.w.functionARN(f.Name), "Version": "$LATEST", "Runtime": "provided.al2023", "Handler": "bootstrap",
		"PackageType": "Zip", "Timeout": int(f.Timeout.Seconds()), "MemorySize": f.MemorySize, "Environment": map[string]any{"Variables": env},
		"State": state, "StateReason": reason, "LastUpdateStatus": "Successful",
	}
}

func (fs *functions) list(rw http.ResponseWriter, _ *http.Request) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(fs.all)) {
		all = append(all, fs.configuration(fs.all[name]))
	}
	writeJSON(rw, map[string]any{"Functions": all})
	return nil
}

func (fs *functions) get(rw http.ResponseWriter, r *http.Request) error {
	f, err := fs.named(r)
	if err != nil {
		return err
	}
	out := map[string]any{"Configuration": fs.configuration(f), "Code": map[string]any{}}
	if f.Concurrency > 0 {
		out["Concurrency"] = map[string]any{"ReservedConcurrentExecutions": f.Concurrency}
	}
	writeJSON(rw, out)
	return nil
}

func (fs *functions) getConfiguration(rw http.ResponseWriter, r *http.Request) error {
	f, err := fs.named(r)
	if err != nil {
		return err
	}
	writeJSON(rw, fs.configuration(f))
	return nil
}

func (fs *functions) getConcurrency(rw http.ResponseWriter, r *http.Request) error {
	f, err := fs.named(r)
	if err != nil {
		return err
	}
	out := map[string]any{}
	if f.Concurrency > 0 {
		out["ReservedConcurrentExecutions"] = f.Concurrency
	}
	writeJSON(rw, out)
	return nil
}

const maxEvent = 6 << 20

var errEventTooLarge = &lambdaError{http.StatusRequestEntityTooLarge, "RequestTooLargeException", "the event exceeds 6 MB"}

// invoke calls the function, and waits for its response, unless the type is Event. Such an invocation is not retried.
func (fs *functions) invoke(rw http.ResponseWriter, r *http.Request) error {
	f, err := fs.named(r)
	if err != nil {
		return err
	}
	if f.process == nil {
		return invalidParameter("%s: %s", f.Name, errNoBootstrap)
	}
	event, err := io.ReadAll(io.LimitReader(r.Body, maxEvent+1))
	if err != nil {
		return err
	}
	if len(event) > maxEvent {
		return errEventTooLarge
	}
	if len(event) == 0 {
		event = []byte("{}")
	}
	switch kind := r.Header.Get("X-Amz-Invocation-Type"); {
	case !json.Valid(event):
		return &lambdaError{http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json"}
	case kind == "DryRun":
		rw.WriteHeader(http.StatusNoContent)
		return nil
	case kind == "Event":
		go func() {
			if _, err := f.process.Invoke(context.WithoutCancel(r.Context()), event); err != nil {
				fmt.Fprintf(f.out, "localaws: an invocation of the type Event has failed, and is not retried: %v\n", err)
			}
		}()
		rw.WriteHeader(http.StatusAccepted)
		return nil
	case kind != "" && kind != "RequestResponse":
		return invalidParameter("InvocationType is %q, must be RequestResponse, Event or DryRun", kind)
	}
	rw.Header().Set("X-Amz-Executed-Version", "$LATEST")
	out, err := f.process.Invoke(r.Context(), event)
	failed, isFailed := errors.AsType[*runtimeapi.FunctionError](err)
	switch {
	case errors.Is(err, esm.ErrThrottled):
		return &lambdaError{http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded."}
	case isFailed:
		rw.Header().Set("X-Amz-Function-Error", "Unhandled")
		writeJSON(rw, failed)
		return nil
	case err != nil:
		return err
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(out) // the client disconnected
	return nil
}
