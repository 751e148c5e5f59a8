package esm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// failures is a decoded response.
type failures struct {
	ids   []string // reported as failed
	noKey bool     // an object that has members, but no batchItemFailures
}

const failuresKey = "batchItemFailures"

// readFailures decodes a response. Any mistake in the response is an error, and fails the whole batch: Lambda does not use
// the items that are correct.
//
// It does not decode into a struct, because encoding/json ignores case there, and Lambda does not accept
// "BatchItemFailures".
func readFailures(response []byte) (failures, error) {
	if len(bytes.TrimSpace(response)) == 0 {
		return failures{}, nil
	}
	if !json.Valid(response) {
		return failures{}, errors.New("response is not JSON")
	}
	var object map[string]json.RawMessage // nil for null, and so is items
	if err := json.Unmarshal(response, &object); err != nil {
		return failures{}, errors.New("response is not an object")
	}
	list, ok := object[failuresKey]
	if !ok {
		return failures{noKey: len(object) > 0}, nil
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return failures{}, fmt.Errorf("%s is not a list of objects", failuresKey)
	}
	var f failures
	for i, item := range items {
		var id string
		if err := json.Unmarshal(item["itemIdentifier"], &id); err != nil || id == "" {
			return failures{}, fmt.Errorf("%s[%d] has no itemIdentifier", failuresKey, i)
		}
		f.ids = append(f.ids, id)
	}
	return f, nil
}

// succeeded returns the records to delete after a response.
func (m *mapping) succeeded(records []record, response []byte) []record {
	f, err := readFailures(response)
	if !m.cfg.ReportBatchItemFailures {
		if len(f.ids) > 0 || err != nil && bytes.Contains(response, []byte(failuresKey)) {
			m.log.Warn("esm: response ignored because ReportBatchItemFailures is off; messages that the function reported as failed are deleted",
				"failed", f.ids, "records", len(records))
		}
		return records
	}
	for _, id := range f.ids {
		if err == nil && !slices.ContainsFunc(records, func(r record) bool { return r.id == id }) {
			err = fmt.Errorf("%s names %q, which is no message of the batch", failuresKey, id)
		}
	}
	switch {
	case err != nil:
		m.log.Warn("esm: invalid response; the whole batch returns when its visibility timeout ends", "error", err, "records", len(records))
		return nil
	case f.noKey:
		m.log.Warn("esm: response has no batchItemFailures; the whole batch is deleted", "records", len(records))
	}
	return slices.DeleteFunc(slices.Clone(records), func(r record) bool { return slices.Contains(f.ids, r.id) })
}
