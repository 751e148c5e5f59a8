package dynamostore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sqsonce/sqsonce/internal/must"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// What is logged without a logger of the test's own is not printed.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

// A role that allows no statements costs ten times as many requests: that is said without an Options.Logger too. Not parallel.
func TestWarningWithoutALogger(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(New(&dynamodb.Client{}, "dedup"))(t)
		s.batcher.disable("AccessDeniedException")
	}) // it waits for the log
	if !strings.Contains(log.String(), "batches are off") {
		t.Errorf("logged %q, want the warning", &log)
	}
}
