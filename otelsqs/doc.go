// Package otelsqs is OpenTelemetry for sqsonce: traces and metrics of its hosts, its deduplication, its publisher and its
// outbox, by the semantic conventions for messaging, version 1.43.0.
//
//	tel, err := otelsqs.New()
//	once, err := dedup.New(store, "billing", tel.Once)
//	w, err := sqsworker.New(client, queueURL, once.Handler(h), tel.Worker) // or lambda.Start(once.Handler(h), tel.Lambda)
//	p, err := fifo.NewPublisher(client, queueURL, "orders", tel.Publisher)
//	r, err := outbox.NewRelay(box, p, tel.Relay)
//
// It depends on the OpenTelemetry API alone: what is exported where, and what is sampled, is the program's to set up.
package otelsqs
