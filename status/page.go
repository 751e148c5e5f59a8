package status

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// pageRunning is how many handlers the page lists.
const pageRunning = 100

const timeFormat = "2006-01-02 15:04:05 MST"

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem;max-width:70rem}table{border-collapse:collapse;margin:.5rem 0 1.5rem}` +
	`th,td{border-bottom:1px solid #8888;padding:.15rem .8rem .15rem 0;text-align:left;vertical-align:top}td.n{text-align:right;` +
	`font-variant-numeric:tabular-nums}td{overflow-wrap:anywhere}:root{color-scheme:light dark}`

// contentSecurity allows only the page's own style.
var contentSecurity = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return style }, "visible": visible, "number": number, "rows": rows, "seconds": seconds,
	"time": func(t time.Time) string { return t.Format(timeFormat) },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{visible .Report.Name}}</title><style>{{style}}</style></head>
<body>
<h1>{{visible .Report.Name}} {{visible .Report.Version}}</h1>
<p>As of <time>{{time .Report.Now}}</time>, serving since <time>{{time .Report.Started}}</time>.
The same for programs: <a href="live">live</a>, <a href="ready">ready</a>, <a href="stats">stats</a>, <a href="running">running</a>.</p>
{{range .Report.Workers}}
<h2>Queue {{visible .Queue}}</h2>
<p>{{.State}}{{if .Intake}}, intake {{.Intake}}{{end}}.
{{if .NotLive}}<strong>Not live</strong>: {{visible .NotLive}}.{{else}}Live.{{end}}
{{if .NotReady}}<strong>Not ready</strong>: {{visible .NotReady}}.{{else}}Ready.{{end}}</p>
{{template "stats" rows "worker" .Stats}}
{{end}}
{{with .Report.Consumers}}<h2>Consumers</h2>{{range .}}<h3>{{visible .Name}}</h3>{{template "stats" rows "consumer" .Stats}}{{end}}{{end}}
{{with .Report.Stores}}<h2>Stores</h2>{{range .}}<h3>{{visible .Name}}</h3>{{template "stats" rows "store" .Stats}}{{end}}{{end}}
{{with .Report.Relays}}<h2>Relays</h2>{{range .}}<h3>{{visible .Name}}</h3>{{template "stats" rows "relay" .Stats}}{{end}}{{end}}
{{with .Report.Publishers}}<h2>Publishers</h2>{{range .}}<h3>{{visible .Name}}</h3>{{template "stats" rows "publisher" .Stats}}{{end}}{{end}}
{{if .Report.Workers}}<h2>Running handlers</h2>
<table><caption>{{len .Running.Running}} of {{.Running.Total}}, the oldest first</caption>
<thead><tr><th scope="col">queue</th><th scope="col">message ID</th>{{if .Identifiers}}<th scope="col">key</th><th scope="col">group</th>{{end}}<th scope="col">receive count</th><th scope="col">running</th><th scope="col">hidden for</th><th scope="col">stuck</th></tr></thead>
<tbody>
{{range .Running.Running}}<tr><td>{{visible .Queue}}</td><td>{{visible .MessageID}}</td>{{if $.Identifiers}}<td>{{visible .Key}}</td><td>{{visible .Group}}</td>{{end}}<td class="n">{{.Receives}}</td><td class="n">{{seconds .Seconds}}</td><td class="n">{{if gt .Lease 0.0}}{{seconds .Lease}}{{else}}not any more{{end}}</td><td>{{if .Stuck}}stuck{{end}}</td></tr>
{{end}}</tbody></table>{{end}}
</body>
</html>
{{define "stats"}}<table><thead><tr><th scope="col">name</th><th scope="col">value</th><th scope="col">meaning</th></tr></thead>
<tbody>
{{range .}}<tr><th scope="row">{{.Name}}</th><td class="n">{{number .}}</td><td>{{.Help}}</td></tr>
{{end}}</tbody></table>
{{end}}`))

func (h *handler) page() (answer, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		Report      statusreport.Report
		Running     statusreport.RunningReport
		Identifiers bool
	}{h.report(), h.running(pageRunning), h.opts.Identifiers})
	return answer{http.StatusOK, "text/html; charset=utf-8", b.Bytes()}, err
}

// row is one number of the page.
type row struct {
	statusreport.Field
	Value float64
}

// rows are the numbers in the order of Fields.
func rows(of string, s statusreport.Stats) (all []row) {
	for _, f := range statusreport.Fields {
		if v, ok := s[f.Name]; ok && f.Of == of {
			all = append(all, row{f, v})
		}
	}
	return all
}

// visible shows a text that others decide, such as a group: one with controls or marks of direction as Go would quote it.
func visible(s string) string {
	if quoted := strconv.Quote(s); len(quoted) != len(s)+len(`""`) {
		return quoted
	}
	return s
}

func number(r row) string {
	if strings.HasSuffix(r.Name, "timestamp_seconds") && r.Value != 0 {
		return time.UnixMilli(int64(r.Value * 1000)).UTC().Format(timeFormat)
	}
	return strconv.FormatFloat(r.Value, 'f', -1, 64)
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Truncate(time.Second).String()
}
