package sqsonce_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runbookFiles are what leads to docs/runbook.md, and what it quotes.
func runbookFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{
		"docs/runbook.md", "docs/logs.md", "template.yaml", "deploy/resources.yaml", rulesFile, "otelsqs/testdata/metrics.txt", "emf/line.go",
	} {
		files[name] = readText(t, name)
	}
	return files
}

// Every alarm, every rule and every line at ERROR leads to a section of the runbook, and something leads to each. Its sections say
// what is asked at night, and its queries use what exists.
func TestRunbook(t *testing.T) {
	t.Parallel()
	for _, problem := range runbookProblems(runbookFiles(t)) {
		t.Error(problem)
	}
}

func TestRunbookSeesWhatIsBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, old, broken, want string }{
		"no section":         {"docs/runbook.md", "## Late write\n", "## Late writes\n", "#late-write"},
		"orphan":             {"docs/runbook.md", "## Late write\n", "## Latest write\n", "nothing leads to #latest-write"},
		"no label":           {"docs/runbook.md", "**Over** when the mended", "Over when the mended", "#late-write: no **Over"},
		"too long":           {"docs/runbook.md", "## Late write\n", "## Late write\n" + strings.Repeat("a\n\n", 20), "#late-write: 3"},
		"line of the table":  {"docs/runbook.md", "| `sqlstore: processor: event parked` |", "| `sqlstore: processor: event packed` |", "event packed"},
		"beginning of two":   {"docs/runbook.md", "`lambda: message not sent to the dead-letter queue` |", "`lambda: message` |", "leads to #dlq"},
		"not in the table":   {"docs/runbook.md", "| `sqlstore: processor: event parked` |", "| |", "no row names sqlstore: processor: event parked"},
		"quoted line":        {"docs/runbook.md", "`sqsworker: available again` was", "`sqsworker: able again` was", "sqsworker: able again"},
		"field":              {"docs/runbook.md", "not_started > 0", "unstarted > 0", "unstarted"},
		"member of emf":      {"docs/runbook.md", "sum(Records)", "sum(Messages)", "Messages"},
		"text in a query":    {"docs/runbook.md", `like "record not completed"`, `like "record not written"`, "record not written"},
		"metric":             {"docs/runbook.md", "max by (messaging_destination_name) (sqsonce_publisher_age_seconds)", "max by (messaging_destination_name) (sqsonce_publisher_age)", "sqsonce_publisher_age"},
		"label":              {"docs/runbook.md", "{sqsonce_result=", "{sqsonce_outcome=", "sqsonce_outcome is no label"},
		"value":              {"docs/runbook.md", `sqsonce_state="held"`, `sqsonce_state="holding"`, `"holding" is no string`},
		"line without":       {"docs/logs.md", "| [ERROR](runbook.md#parked) |", "| ERROR |", "at ERROR and leads nowhere"},
		"line elsewhere":     {"docs/logs.md", "runbook.md#parked", "runbook.md#unparked", "#unparked"},
		"alarm":              {"template.yaml", runbookURL + "takeovers", "", "TakeoversAlarm leads nowhere"},
		"two anchors":        {"template.yaml", "OrdersFifoSlowAlarm:", "OrdersFifoEMFAlarm:", "EMFAlarm leads to #"},
		"only a line":        {"docs/logs.md", "| [ERROR](runbook.md#parked) |", "| [WARN](runbook.md#parked) |", "nothing leads to #parked"},
		"another alarm":      {"template.yaml", "OrdersSlowAlarm:", "OrdersLateAlarm:", "no row names LateAlarm"},
		"alarm of the table": {"docs/runbook.md", "`ExpiringAlarm`", "`ExpiredAlarm`", "ExpiredAlarm"},
		"rule":               {rulesFile, runbookURL + "saturated", "", "SqsonceSaturated leads nowhere"},
		"another rule":       {rulesFile, "alert: SqsoncePaused", "alert: SqsonceIdle", "no row names SqsonceIdle"},
		"no other rule":      {rulesFile, runbookURL + "saturated", runbookURL + "age", "nothing leads to #saturated"},
		"rule with a typo":   {rulesFile, runbookURL + "saturated", runbookURL + "saturation", "#saturation, which"},
		"metric is gone":     {"otelsqs/testdata/metrics.txt", "sqsonce.publisher.throttled ", "sqsonce.publisher.slowed ", "sqsonce_publisher_throttled_total"},
		"unit has changed":   {"otelsqs/testdata/metrics.txt", "sqsonce.publisher.age gauge s", "sqsonce.publisher.age gauge ms", "sqsonce_publisher_age_seconds"},
		"attribute is gone":  {"otelsqs/testdata/metrics.txt", "error.type=", "error.kind=", "error_type"},
		"member of emf gone": {"emf/line.go", `"NotStarted"`, `"Unstarted"`, "NotStarted"},
	} {
		files := runbookFiles(t)
		changed := strings.ReplaceAll(files[c.file], c.old, c.broken)
		if changed == files[c.file] {
			t.Errorf("%s: %s has no %q", name, c.file, c.old)
		}
		files[c.file] = changed
		if found := strings.Join(runbookProblems(files), "\n"); !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}

const (
	rulesFile  = "deploy/prometheus/rules.yaml"
	runbookURL = "https://github.com/sqsonce/sqsonce/blob/main/docs/runbook.md#"
)

func runbookProblems(files map[string]string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	page := files["docs/runbook.md"]
	sections := runbookSections(page)
	named, led := map[string]string{}, map[string]bool{} // the anchors of alarms, rules and lines
	lead := func(from, name, anchor string) {
		if old := named[name]; old != "" && old != anchor {
			bad("%s: %s leads to #%s, and to #%s", from, name, anchor, old)
		}
		if named[name] = anchor; sections[anchor] == "" {
			bad("%s leads to #%s, which docs/runbook.md does not have", from, anchor)
		}
	}
	alarm := regexp.MustCompile(`(?m)^  (?:OrdersFifo|Orders|Dedup|Ledger)?(\w+):\n    Type: AWS::CloudWatch::Alarm\n((?:(?: {4}.*)?\n)*)`)
	rule := regexp.MustCompile(`(?m)^ *- alert: *(\w+)((?:\n *[^-\s].*)*)`)
	for _, from := range []struct {
		file  string
		named *regexp.Regexp
		least int
	}{{"template.yaml", alarm, 29}, {"deploy/resources.yaml", alarm, 2}, {rulesFile, rule, 10}} {
		all := from.named.FindAllStringSubmatch(files[from.file], -1)
		if len(all) < from.least {
			bad("%s has %d, want at least %d: were they found?", from.file, len(all), from.least)
		}
		for _, m := range all {
			_, anchor, _ := strings.Cut(m[2], runbookURL)
			if anchor = regexp.MustCompile(`^[a-z-]*`).FindString(anchor); anchor == "" {
				bad("%s: %s leads nowhere", from.file, m[1])
				continue
			}
			led[anchor] = true
			lead(from.file, m[1], anchor)
		}
	}

	var texts []string
	for _, m := range logRow.FindAllStringSubmatch(files["docs/logs.md"], -1) {
		texts = append(texts, m[3])
		if m[2] != "" {
			led[m[2]] = led[m[2]] || m[1] == "ERROR"
			lead("docs/logs.md", m[3], m[2])
		} else if m[1] == "ERROR" {
			bad("docs/logs.md: %s is at ERROR and leads nowhere", m[3])
		}
	}
	inTable := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[.*\]\(#([a-z-]+)\) \|.*$`).FindAllStringSubmatch(sections["where-to-go"], -1) {
		for _, m := range inBackquotes.FindAllStringSubmatch(row[0], -1) {
			leads := false
			for name, anchor := range named {
				beginning := named[m[1]] == "" && logLine.MatchString(name) && strings.HasPrefix(name, m[1]) // enough for a line
				if name != m[1] && !beginning {
					continue
				}
				if leads, inTable[name] = true, true; anchor != row[1] {
					bad("docs/runbook.md: %s is in the row of #%s, and leads to #%s", m[1], row[1], anchor)
				}
			}
			if !leads {
				bad("docs/runbook.md: %s is in the row of #%s, and leads nowhere", m[1], row[1])
			}
		}
	}
	for name := range named {
		if !inTable[name] {
			bad("docs/runbook.md: no row names %s", name)
		}
	}

	for anchor, text := range sections {
		switch linked := strings.Count(page, "](#"+anchor+")"); {
		case strings.Contains(text, "\n**Means.**") || led[anchor]: // a section about something that has happened
			problems = append(problems, sectionProblems(anchor, text)...)
			if !led[anchor] {
				bad("nothing leads to #%s", anchor)
			}
		case linked == 0 && anchor != "where-to-go":
			bad("docs/runbook.md: no link to #%s", anchor)
		}
	}
	_, code := readCode()
	for _, m := range inBackquotes.FindAllStringSubmatch(page, -1) {
		if logLine.MatchString(m[1]) && !strings.Contains(code, m[1]) {
			bad("docs/runbook.md quotes %q, which no string of the code has", m[1])
		}
	}
	return append(problems, queryProblems(files, texts, code)...)
}

// runbookSections are the sections of the second level by their anchors, which are GitHub's.
func runbookSections(page string) map[string]string {
	sections := map[string]string{}
	for _, part := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		sections[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = text
	}
	return sections
}

// sectionProblems are about a section's form: five labels, in their order, and not more than can be read at night.
func sectionProblems(anchor, text string) (problems []string) {
	rest := text
	for _, label := range []string{"\n**Means.**", "\n**Does not mean**", "\n**Look", "\n**Do.**", "\n**Over** when"} {
		_, after, found := strings.Cut(rest, label)
		if rest = after; !found {
			problems = append(problems, fmt.Sprintf("#%s: no %s, or not in its place", anchor, label[1:]))
			break
		}
	}
	if n := len(regexp.MustCompile(`(?m)^.+$`).FindAllString(text, -1)); n < 8 || n > 20 {
		problems = append(problems, fmt.Sprintf("#%s: %d lines, want 8 to 20", anchor, n))
	}
	return problems
}

var (
	queryBlock   = regexp.MustCompile("(?ms)^```(insights|promql)\n(.*?)^```")
	quotedText   = regexp.MustCompile(`"([^"]*)"`)
	queryRegexp  = regexp.MustCompile(`/.*/`)
	groupName    = regexp.MustCompile(`\?<(\w+)>`)
	identifier   = regexp.MustCompile(`@?[A-Za-z_][\w.]*`)
	alias        = regexp.MustCompile(` as (\w+)`)
	matcherOrBy  = regexp.MustCompile(`\{([^}]*)\}|\bby \(([^)]*)\)`)
	promDuration = regexp.MustCompile(`\[\d+[a-z]\]`)
)

// queryProblems are about the queries, which nothing here can run: what they name that does not exist.
func queryProblems(files map[string]string, texts []string, code string) (problems []string) {
	bad := func(format string, args ...any) {
		problems = append(problems, "docs/runbook.md: "+fmt.Sprintf(format, args...))
	}
	metrics := prometheusMetrics(files["otelsqs/testdata/metrics.txt"])
	blocks := queryBlock.FindAllStringSubmatch(files["docs/runbook.md"], -1)
	if len(blocks) < 15 {
		bad("%d queries, want at least 15: were they found?", len(blocks))
	}
	for _, block := range blocks {
		if block[1] == "promql" {
			for line := range strings.Lines(block[2]) {
				for _, problem := range promqlProblems(line, metrics, code) {
					bad("%s: %s", line, problem)
				}
			}
			continue
		}
		query := block[2]
		for _, m := range quotedText.FindAllStringSubmatch(queryRegexp.ReplaceAllString(query, ""), -1) {
			if !slices.Contains(otherTexts, m[1]) && !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, m[1]) }) {
				bad("no row of docs/logs.md has %q", m[1])
			}
		}
		own := slices.Concat(alias.FindAllStringSubmatch(query, -1), groupName.FindAllStringSubmatch(query, -1))
		for _, name := range identifier.FindAllString(quotedText.ReplaceAllString(queryRegexp.ReplaceAllString(query, ""), ""), -1) {
			isOwn := slices.ContainsFunc(own, func(m []string) bool { return m[1] == name })
			isKey := strings.Contains(files["docs/logs.md"], "\n| `"+name+"` |")
			isMember := strings.Contains(files["emf/line.go"], `"`+name+`"`)
			if !isOwn && !isKey && !isMember && !slices.Contains(insightsWords, name) {
				bad("the query has %s, which is no key of docs/logs.md and no member of emf's lines", name)
			}
		}
	}
	return problems
}

// insightsWords are CloudWatch's and Lambda's, https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html and
// https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html.
var insightsWords = strings.Fields(`fields filter parse stats sort limit like not and or by as desc count sum max bin 5m 1h m h
	@timestamp @message @logStream type record.status record.errorType`)

// otherTexts are those of Lambda's platform events and of emf's lines, and the key of an event.
var otherTexts = []string{"orders|order-42", "platform.report", "success", "_aws", "sqsonce: invocation"}

// prometheusMetrics are the labels by the names that OpenTelemetry's exporter for Prometheus gives the metrics of the golden file.
func prometheusMetrics(golden string) map[string][]string {
	metrics, names := map[string][]string{}, []string{}
	underscores := strings.NewReplacer(".", "_").Replace
	for line := range strings.Lines(golden) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(line, " "):
			for pair := range strings.SplitSeq(words[0], ",") {
				label, _, _ := strings.Cut(pair, "=")
				for _, name := range names {
					metrics[name] = append(metrics[name], underscores(label))
				}
			}
		default:
			name := underscores(words[0]) + map[string]string{"s": "_seconds", "By": "_bytes"}[words[len(words)-1]]
			switch words[1] {
			case "counter":
				names = []string{name + "_total"}
			case "histogram":
				names = []string{name + "_bucket", name + "_sum", name + "_count"}
			default:
				names = []string{name}
			}
			for _, name := range names {
				metrics[name] = []string{"le", "job", "instance"}
			}
		}
	}
	return metrics
}

func promqlProblems(expression string, metrics map[string][]string, code string) (problems []string) {
	var labels, known []string
	for _, m := range matcherOrBy.FindAllStringSubmatch(expression, -1) {
		for _, value := range quotedText.FindAllStringSubmatch(m[1], -1) {
			if !strings.Contains(code, value[1]+"\n") {
				problems = append(problems, value[0]+" is no string of the code")
			}
		}
		labels = append(labels, identifier.FindAllString(quotedText.ReplaceAllString(m[1]+m[2], ""), -1)...)
	}
	rest := promDuration.ReplaceAllString(matcherOrBy.ReplaceAllString(expression, ""), "")
	for _, name := range identifier.FindAllString(rest, -1) {
		if of, ok := metrics[name]; ok {
			known = append(known, of...)
		} else if !slices.Contains([]string{"histogram_quantile", "sum", "max", "rate", "increase"}, name) {
			problems = append(problems, name+" is no metric")
		}
	}
	for _, label := range labels {
		if !slices.Contains(known, label) {
			problems = append(problems, label+" is no label of its metrics")
		}
	}
	return problems
}

// What queries parse they find in all forms that a log has: JSON, text, and the default of slog. The one that counts lines counts
// each that leads to a section.
func TestRunbookParsesLines(t *testing.T) {
	t.Parallel()
	files := runbookFiles(t)
	patterns := regexp.MustCompile(`parse @message /(.*)/`).FindAllStringSubmatch(files["docs/runbook.md"], -1)
	of := []string{"", "dedup: event taken over", "record not completed"} // the lines of each
	if len(patterns) != len(of) {
		t.Fatalf("%d queries, want one that counts lines and two that find keys", len(patterns))
	}
	filter := regexp.MustCompile(regexp.MustCompile(`filter @message like /(.*)/`).FindStringSubmatch(files["docs/runbook.md"])[1])
	for i, p := range patterns {
		pattern := regexp.MustCompile(p[1])
		for _, row := range logRow.FindAllStringSubmatch(files["docs/logs.md"], -1) {
			if !strings.Contains(row[3], of[i]) {
				continue
			}
			if line := row[1] + " " + row[3]; i == 0 && row[2] != "" && !filter.MatchString(line) {
				t.Errorf("%s leaves out %s", filter, line)
			}
			for _, format := range []string{
				`{"time":"2026-11-23T16:43:32Z","level":"WARN","msg":%q,"key":"a#b c|d","fence":1}`,
				`time=2026-11-23T16:43:32Z level=WARN msg=%q key="a#b c|d" fence=1`, `2026/11/23 16:43:32 WARN %s key="a#b c|d" fence=1`,
				`time=2026-11-23T16:43:32Z level=WARN msg=%q key=a#bc|d fence=1`, `2026/11/23 16:43:32 WARN %s fence=1 key=a#bc|d`,
			} {
				line := fmt.Sprintf(format, row[3])
				found := pattern.FindStringSubmatch(line)
				if found == nil || i == 0 && !strings.HasPrefix(found[1], row[3]) || i > 0 && strings.ReplaceAll(found[pattern.SubexpIndex("event")], "b c", "bc") != "a#bc|d" {
					t.Errorf("%s in %s: found %q", pattern, line, found)
				}
			}
		}
	}
}
