package telemetry

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"

	"github.com/sqsonce/sqsonce/internal/must"
)

// series are the labels and their known values of each metric, by its name in Prometheus.
type series map[string]map[string][]string

var kinds = map[string]otlptranslator.MetricType{
	"counter": otlptranslator.MetricTypeMonotonicCounter, "updowncounter": otlptranslator.MetricTypeNonMonotonicCounter,
	"gauge": otlptranslator.MetricTypeGauge, "histogram": otlptranslator.MetricTypeHistogram,
}

// readGolden reads otelsqs's golden list.
func readGolden(t *testing.T) series {
	t.Helper()
	text := must.Get(os.ReadFile("../../../otelsqs/testdata/metrics.txt"))(t)
	names := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	all := series{}
	var current []string // names of one metric
	for line := range strings.Lines(string(text) + failedCall) {
		if attributes, ok := strings.CutPrefix(line, "  "); ok {
			all.add(t, current, strings.TrimSpace(attributes))
			continue
		}
		words := strings.Fields(line)
		kind, unit := words[1], words[len(words)-1]
		name, err := names.Build(otlptranslator.Metric{Name: words[0], Unit: unit, Type: kinds[kind]})
		if err != nil || kinds[kind] == otlptranslator.MetricTypeUnknown {
			t.Fatalf("%s: %v", line, err)
		}
		current = []string{name}
		if kind == "histogram" {
			current = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
	}
	all["up"] = map[string][]string{"job": nil, "instance": nil} // Prometheus's own
	return all
}

// add adds a series, whose attributes are key=value,key=value.
func (s series) add(t *testing.T, names []string, attributes string) {
	t.Helper()
	labels := otlptranslator.LabelNamer{}
	for _, name := range names {
		if s[name] == nil {
			s[name] = map[string][]string{"job": nil, "instance": nil} // of the scrape
		}
		if strings.HasSuffix(name, "_bucket") {
			s[name]["le"] = nil
		}
		for _, attribute := range strings.Split(attributes, ",") {
			key, value, _ := strings.Cut(attribute, "=")
			label := must.Get(labels.Build(key))(t)
			s[name][label] = append(s[name][label], value)
		}
	}
}

// failedCall is a call of SQS that fails, which the golden list's run has no occasion for.
const failedCall = "messaging.client.operation.duration histogram s\n  error.type=timeout\n"
