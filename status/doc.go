// Package status is an HTTP handler with what a running worker knows: for probes, for people, for sqsonce top, the doctor and the
// console.
//
//	h, err := status.Handler(func(o *status.Options) {
//		o.Workers = []*sqsworker.Worker{w}
//		o.Consumers = map[string]status.Consumer{"billing": once}
//	})
//	http.ListenAndServe("127.0.0.1:8080", h)
//
// It answers GET and HEAD:
//
//   - /live and /ready: 200 or 503, and JSON. The rules are those of sqsworker.Worker.Health, for all workers.
//   - /stats: JSON: names and numbers. The page says what each number is.
//   - /running: JSON: at most 1,000 handlers, the oldest first.
//   - /: a page for people with the same, without a script.
//
// There is no body and no payload in any answer; keys of events and groups are there only with Options.Identifiers. There is no
// authentication: serve it where probes are, not where customers are. Under a prefix it is mounted with [http.StripPrefix], also for
// the page:
//
//	mux.Handle("/status/", http.StripPrefix("/status", h))
//
// There is no /metrics: the module otelsqs has the metrics, and its Prometheus exporter can be served beside this handler.
//
// An answer is complete in memory before it is written: a client that reads slowly holds no lock. It costs the worker a few locks
// of microseconds each, and nothing while nobody asks.
package status
