package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/plan"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/template"
	"github.com/sqsonce/sqsonce/localstack/cmd/localaws/internal/tree"
)

func (fs *functions) identified(r *http.Request) (*mapping, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if m := fs.mappings[r.PathValue("id")]; m != nil {
		return m, nil
	}
	return nil, &lambdaError{http.StatusNotFound, "ResourceNotFoundException", "The resource you requested does not exist."}
}

// state is the State of the mapping.
func (m *mapping) state() string {
	switch {
	case m.updating && m.Disabled:
		return "Disabling"
	case m.updating:
		return "Updating"
	case m.Disabled || m.f.process == nil:
		return "Disabled"
	}
	return "Enabled"
}

// configuration is an EventSourceMappingConfiguration.
func (m *mapping) configuration(r *http.Request) map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]any{
		"UUID": m.ID, "EventSourceArn": m.Source, "FunctionArn": m.fs.w.functionARN(m.Function), "BatchSize": m.BatchSize, "State": m.state(),
		"StateTransitionReason": "USER_INITIATED", "LastModified": float64(m.modified.UnixMilli()) / 1000,
		"LastProcessingResult": m.problem, "MaximumBatchingWindowInSeconds": int(m.Window.Seconds()), "FunctionResponseTypes": []string{},
	}
	if m.f.process == nil {
		out["StateTransitionReason"] = errNoBootstrap.Error()
	}
	if m.ReportBatchItemFailures {
		out["FunctionResponseTypes"] = []string{"ReportBatchItemFailures"}
	}
	if m.MaximumConcurrency > 0 {
		out["ScalingConfig"] = map[string]any{"MaximumConcurrency": m.MaximumConcurrency}
	}
	if len(m.Filters) > 0 {
		var filters []any
		for _, f := range m.Filters {
			filters = append(filters, map[string]string{"Pattern": f})
		}
		out["FilterCriteria"] = map[string]any{"Filters": filters}
	}
	if m.QueueName() != "" {
		out["BatchSize"] = cmp.Or(m.BatchSize, 10)
		return out
	}
	if arn, err := m.fs.w.streamARN(r.Context(), m.TableName()); err == nil {
		out["EventSourceArn"] = arn
	}
	out["BatchSize"] = cmp.Or(m.BatchSize, 100)
	out["BisectBatchOnFunctionError"], out["ParallelizationFactor"] = m.BisectOnError, max(1, m.ParallelizationFactor)
	out["StartingPosition"], out["MaximumRetryAttempts"], out["MaximumRecordAgeInSeconds"] = "TRIM_HORIZON", -1, -1
	if m.FromLatest {
		out["StartingPosition"] = "LATEST"
	}
	if m.MaximumRetryAttempts != nil {
		out["MaximumRetryAttempts"] = *m.MaximumRetryAttempts
	}
	if m.MaximumRecordAge > 0 {
		out["MaximumRecordAgeInSeconds"] = int(m.MaximumRecordAge.Seconds())
	}
	return out
}

const pageOfMappings = 100

func (fs *functions) listMappings(rw http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	fs.mu.Lock()
	all := maps.Clone(fs.mappings)
	fs.mu.Unlock()
	page, size := []any{}, pageOfMappings
	if s := q.Get("MaxItems"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return invalidParameter("MaxItems is %q, must be 1 or more", s)
		}
		size = min(n, size)
	}
	out, last := map[string]any{}, ""
	for _, id := range slices.Sorted(maps.Keys(all)) {
		m := all[id]
		if id <= q.Get("Marker") || q.Get("FunctionName") != "" && plan.FunctionName(q.Get("FunctionName")) != m.f.Name {
			continue
		}
		c := m.configuration(r)
		if arn := q.Get("EventSourceArn"); arn != "" && arn != c["EventSourceArn"] {
			continue
		}
		if len(page) == size {
			out["NextMarker"] = last
			break
		}
		page, last = append(page, c), id
	}
	out["EventSourceMappings"] = page
	writeJSON(rw, out)
	return nil
}

func (fs *functions) getMapping(rw http.ResponseWriter, r *http.Request) error {
	m, err := fs.identified(r)
	if err != nil {
		return err
	}
	writeJSON(rw, m.configuration(r))
	return nil
}

// updateMapping changes the settings that the request has.
func (fs *functions) updateMapping(rw http.ResponseWriter, r *http.Request) error {
	m, err := fs.identified(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxEvent))
	if err != nil {
		return err
	}
	n, err := tree.Parse(body)
	if err != nil {
		return invalidParameter("%s", err)
	}
	reader := &tree.Reader{File: "request"}
	p := reader.Root("", n)
	p.Only(slices.DeleteFunc(slices.Clone(template.Settings), func(s string) bool { return s == "StartingPosition" })...)
	err = m.update(r.Context(), func(m *plan.Mapping) error {
		template.ReadSettings(p, m)
		return reader.Err()
	})
	switch {
	case errors.Is(err, errUpdating):
		return &lambdaError{http.StatusBadRequest, "ResourceInUseException", "Cannot update the event source mapping because it is in use."}
	case err != nil:
		return invalidParameter("%s", err)
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusAccepted)
	return json.NewEncoder(rw).Encode(m.configuration(r))
}
