// Package report is what a run prints: a row for each contestant of each scenario, as a line of JSON or in a table.
package report

// Row is what one contestant did in one scenario. A nil figure does not apply.
type Row struct {
	Scenario    string   `json:"scenario"`
	Contestant  string   `json:"contestant"`
	Latency     *float64 `json:"latency_ms"`
	Slots       *float64 `json:"slots"`
	Messages    *float64 `json:"messages"`
	Rate        *float64 `json:"msg_per_s"`
	SQS         *float64 `json:"sqs_requests_per_msg"`
	DynamoDB    *float64 `json:"dynamodb_requests_per_msg"`
	WriteUnits  *float64 `json:"write_units_per_msg"`
	CPU         *float64 `json:"client_cpu_us_per_msg"`
	EndpointCPU *float64 `json:"endpoint_cpu_us_per_msg"`
	Allocs      *float64 `json:"allocs_per_msg"`
	Conns       *float64 `json:"connections"`
	RSS         *float64 `json:"max_rss_mb"`
	Doubled     *float64 `json:"doubled"`
	Stranded    *float64 `json:"stranded"`
	Undeleted   *float64 `json:"undeleted"`
	OutOfOrder  *float64 `json:"out_of_order"`
	Spread      *float64 `json:"spread"`
}

// Number is a figure that applies.
func Number[T ~int | ~int64 | ~float64](v T) *float64 {
	f := float64(v)
	return &f
}

// figure is a column of numbers.
type figure struct {
	name string
	of   func(*Row) **float64
	// worst takes the highest of the rounds instead of the median: one doubled message in one of three rounds is one.
	worst bool
	// places after the point, in the table.
	places int
}

var figures = []figure{
	{"ms", func(r *Row) **float64 { return &r.Latency }, false, 0},
	{"slots", func(r *Row) **float64 { return &r.Slots }, false, 0},
	{"messages", func(r *Row) **float64 { return &r.Messages }, false, 0},
	{"msg/s", func(r *Row) **float64 { return &r.Rate }, false, 0},
	{"spread", func(r *Row) **float64 { return &r.Spread }, false, 2},
	{"SQS/msg", func(r *Row) **float64 { return &r.SQS }, false, 3},
	{"DDB/msg", func(r *Row) **float64 { return &r.DynamoDB }, false, 3},
	{"WRU/msg", func(r *Row) **float64 { return &r.WriteUnits }, false, 2},
	{"CPU us/msg", func(r *Row) **float64 { return &r.CPU }, false, 1},
	{"endpoint", func(r *Row) **float64 { return &r.EndpointCPU }, false, 1},
	{"allocs/msg", func(r *Row) **float64 { return &r.Allocs }, false, 1},
	{"conns", func(r *Row) **float64 { return &r.Conns }, false, 0},
	{"RSS MB", func(r *Row) **float64 { return &r.RSS }, true, 0},
	{"doubled", func(r *Row) **float64 { return &r.Doubled }, true, 0},
	{"stranded", func(r *Row) **float64 { return &r.Stranded }, true, 0},
	{"undeleted", func(r *Row) **float64 { return &r.Undeleted }, true, 0},
	{"out of order", func(r *Row) **float64 { return &r.OutOfOrder }, true, 0},
}
