// Package status is an HTTP handler that reports the state of the workers in a process. It serves probes, people, sqsonce
// top, the doctor and the console.
//
//	h, err := status.Handler(func(o *status.Options) {
//		o.Workers = []*sqsworker.Worker{w}
//		o.Consumers = map[string]status.Consumer{"billing": once}
//	})
//	http.ListenAndServe("127.0.0.1:8080", h)
//
// It answers GET and HEAD:
//
//   - /live and /ready: 200 or 503, and JSON. The rules are those of [sqsworker.Worker.Health], for all workers.
//   - /stats: JSON with names and numbers. The page explains each number.
//   - /running: JSON with at most 1,000 handlers, the oldest first.
//   - /: a page for people with the same, without a script.
//
// The answers leave out bodies and payloads. They have the keys of events and limits and the groups of messages only
// with Options.Identifiers. The handler doesn't authenticate its clients, so serve it where your probes are, and keep your
// customers from it. To mount it under a prefix, use [http.StripPrefix]. This works for the page too:
//
//	mux.Handle("/status/", http.StripPrefix("/status", h))
//
// The package leaves /metrics to the module otelsqs, which has the metrics. You can serve its Prometheus exporter next to
// this handler.
//
// Each answer costs the worker a few locks of microseconds, and a client that reads slowly doesn't hold one.
package status
