package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// functionName is the function beside the worker. It is never invoked: what is wrong with it is its mapping.
const functionName = "orders"

// function is as much of Lambda's API as sqsonce doctor asks, and the call that mends the mapping.
// https://docs.aws.amazon.com/lambda/latest/api/API_EventSourceMappingConfiguration.html
type function struct {
	mux *http.ServeMux

	mu      sync.Mutex
	mapping map[string]any
}

func newFunction() *function {
	const arn = "arn:aws:lambda:us-east-1:000000000000:function:" + functionName
	f := &function{mux: http.NewServeMux(), mapping: map[string]any{
		"UUID": "1f0c9c1e-6f0b-4a58-8f43-0d1c5b6ae001", "BatchSize": 10, "MaximumBatchingWindowInSeconds": 0, "State": "Enabled",
		"EventSourceArn": queueARN, "FunctionArn": arn, "LastProcessingResult": "OK", "LastModified": 1.7e9,
		"ScalingConfig": map[string]any{"MaximumConcurrency": 2}, "FunctionResponseTypes": []string{},
	}}
	f.handle("GET /2015-03-31/event-source-mappings", func(r *http.Request) any {
		q := r.URL.Query()
		name, source := q.Get("FunctionName"), q.Get("EventSourceArn")
		if name != "" && name != functionName && name != arn || source != "" && source != queueARN {
			return map[string]any{"EventSourceMappings": []any{}}
		}
		return map[string]any{"EventSourceMappings": []any{f.mapping}}
	})
	f.handle("PUT /2015-03-31/event-source-mappings/{uuid}", func(r *http.Request) any {
		var change map[string]any
		if r.PathValue("uuid") != f.mapping["UUID"] || json.NewDecoder(r.Body).Decode(&change) != nil {
			return nil
		}
		for name, value := range change {
			f.mapping[name] = value
		}
		return f.mapping
	})
	f.handle("GET /2015-03-31/functions/{name}/configuration", func(r *http.Request) any {
		if name := r.PathValue("name"); name != functionName && name != arn {
			return nil
		}
		return map[string]any{
			"FunctionName": functionName, "FunctionArn": arn, "Timeout": 5, "MemorySize": 128, "State": "Active",
			"Role": "arn:aws:iam::000000000000:role/orders", "Runtime": "provided.al2023",
		}
	})
	f.handle("GET /2019-09-30/functions/{name}/concurrency", func(*http.Request) any { return map[string]any{} })
	return f
}

// handle answers with what get returns; nil is an error.
func (f *function) handle(pattern string, get func(*http.Request) any) {
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		body, status := get(r), http.StatusOK
		if body == nil {
			w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
			body, status = map[string]string{"Type": "User", "Message": "there is only the function " + functionName}, http.StatusNotFound
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // an error says that the client has gone
	})
}

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.URL.Path = strings.TrimSuffix(r.URL.Path, "/") // ListEventSourceMappings has one
	f.mux.ServeHTTP(w, r)
}
