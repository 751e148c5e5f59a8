// Package picture draws the rows of a run as SVG, for README and docs/cost.md. Only the prices of docs/cost.md stand here.
package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/sqsonce/sqsonce/bench/internal/report"
)

// bar is a row of a chart.
type bar struct {
	label string
	value float64
	text  string
	ours  bool
}

// chart is bars that share a scale.
type chart struct {
	title string
	bars  []bar
}

// labels are the contestants that a user chooses from, by scenario, and what they are called.
var labels = map[string][][2]string{
	"worker": {{"sqsonce", "sqsonce"}, {"gocloud", "gocloud.dev"}, {"hand", "a loop by hand"}, {"sqs-consumer", "sqs-consumer (Node)"}},
	"dedup": {{"sqsonce+ddb", "sqsonce, with a record"}, {"hand+ddb", "by hand, with a record"},
		{"sqs-consumer+powertools", "sqs-consumer + Powertools"}},
}

// Speed draws messages a second and CPU for a message, of a worker without and with a record of each event.
func Speed(rows []report.Row, run string) ([]byte, error) {
	rate := chart{title: "Messages a second (more is better)"}
	cpu := chart{title: "CPU for a message (less is better)"}
	for _, scenario := range []string{"worker", "dedup"} {
		for _, label := range labels[scenario] {
			r, err := find(rows, scenario, label[0])
			if err != nil {
				return nil, err
			}
			if r.Rate == nil || r.CPU == nil {
				return nil, fmt.Errorf("the row %s, %s has no rate or no CPU", scenario, label[0])
			}
			ours := strings.HasPrefix(label[0], "sqsonce")
			rate.bars = append(rate.bars, bar{label[1], *r.Rate, thousands(*r.Rate), ours})
			cpu.bars = append(cpu.bars, bar{label[1], *r.CPU, thousands(*r.CPU) + " µs", ours})
		}
	}
	return draw("Speed of sqsonce and its peers", []chart{rate, cpu}, []string{
		run + ".",
		"One process on each side. SQS and DynamoDB are in memory and answer after 5 ms; handlers return at once.",
		"Left out: TLS, the network, throttling, and the CPU of SQS and DynamoDB. Source: bench/RESULTS.md.",
	})
}

// The prices of docs/cost.md, in dollars for a million: us-east-1, on demand.
const (
	sqsRequest = 0.40
	writeUnit  = 0.625
)

// Cost draws the dollars for a million events: the requests of SQS and the write units of DynamoDB.
func Cost(rows []report.Row, run string) ([]byte, error) {
	c := chart{title: "Dollars for a million events (less is better)"}
	for _, scenario := range []string{"worker", "dedup"} {
		for _, label := range labels[scenario] {
			r, err := find(rows, scenario, label[0])
			if err != nil {
				return nil, err
			}
			if r.SQS == nil || scenario == "dedup" && r.WriteUnits == nil {
				return nil, fmt.Errorf("the row %s, %s has no requests or no write units", scenario, label[0])
			}
			dollars := *r.SQS * sqsRequest
			if r.WriteUnits != nil {
				dollars += *r.WriteUnits * writeUnit
			}
			c.bars = append(c.bars, bar{label[1], dollars, fmt.Sprintf("%.2f", dollars), strings.HasPrefix(label[0], "sqsonce")})
		}
	}
	return draw("Cost of a million events", []chart{c}, []string{
		run + ".",
		"Receives and deletes of a busy standard queue at 0.40 dollars a million, write units at 0.625.",
		"Left out: sends, storage, failed and repeated deliveries, data transfer, and the machine of the worker.",
	})
}

// find returns a contestant's row at the shortest latency.
func find(rows []report.Row, scenario, contestant string) (report.Row, error) {
	var found []report.Row
	for _, r := range rows {
		if r.Scenario == scenario && r.Contestant == contestant && r.Latency != nil {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return report.Row{}, fmt.Errorf("no row %s, %s", scenario, contestant)
	}
	return slices.MinFunc(found, func(a, b report.Row) int { return int(*a.Latency - *b.Latency) }), nil
}

func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	if v >= 10_000 {
		s = fmt.Sprintf("%.0f", v/100) + "00" // the spread is larger
	}
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

const style = `
    .bg { fill: #ffffff; } .ours { fill: #0969da; } .theirs { fill: #afb8c1; }
    text { fill: #1f2328; } .small { font-size: 12px; fill: #57606a; } .title { font-weight: 600; }
    @media (prefers-color-scheme: dark) {
      .bg { fill: #0d1117; } .ours { fill: #4493f8; } .theirs { fill: #57606a; }
      text { fill: #f0f6fc; } .small { fill: #9198a1; }
    }
`

// The layout, in pixels.
const (
	width   = 780
	labelX  = 200
	barX    = 212
	longest = 480
	rowH    = 24
)

func draw(title string, charts []chart, notes []string) ([]byte, error) {
	height := 16 + 18*len(notes)
	var description []string
	for _, c := range charts {
		height += 44 + rowH*len(c.bars)
		var bars []string
		for _, b := range c.bars {
			bars = append(bars, b.label+" "+b.text)
		}
		description = append(description, c.title+": "+strings.Join(bars, ", ")+".")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" `+
		`aria-labelledby="title desc" font-family="system-ui, sans-serif" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&out, "  <title id=\"title\">%s</title>\n  <desc id=\"desc\">%s</desc>\n", escaped(title), escaped(strings.Join(description, " ")))
	fmt.Fprintf(&out, "  <style>%s  </style>\n  <rect class=\"bg\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", style, width, height)
	y := 0
	for _, c := range charts {
		y += 30
		fmt.Fprintf(&out, "  <text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", 16, y, escaped(c.title))
		y += 10
		most := slices.MaxFunc(c.bars, func(a, b bar) int {
			if a.value < b.value {
				return -1
			}
			return 1
		}).value
		for _, b := range c.bars {
			class := "theirs"
			if b.ours {
				class = "ours"
			}
			w := max(1, longest*b.value/most)
			fmt.Fprintf(&out, "  <text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.0f\" height=\"16\" rx=\"3\"/>"+
				"<text x=\"%.0f\" y=\"%d\">%s</text>\n", labelX, y+15, escaped(b.label), class, barX, y+2, w, barX+w+8, y+15, escaped(b.text))
			y += rowH
		}
		y += 4
	}
	y += 8
	for _, n := range notes {
		y += 18
		fmt.Fprintf(&out, "  <text class=\"small\" x=\"16\" y=\"%d\">%s</text>\n", y-6, escaped(n))
	}
	out.WriteString("</svg>\n")
	return out.Bytes(), nil
}

func escaped(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // a buffer takes all
	return out.String()
}
