package status

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // page.html, page.css
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

// pageRunning is how many handlers the page lists.
const pageRunning = 100

const timeFormat = "2006-01-02 15:04:05 MST"

//go:embed page.html
var pageHTML string

//go:embed page.css
var style string

// contentSecurity allows only the page's own style.
var contentSecurity = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(style) }, "visible": visible, "number": number, "rows": rows, "first": firstRows, "seconds": seconds,
	"time": func(t time.Time) string { return t.Format(timeFormat) },
}).Parse(pageHTML))

func (h *handler) page() (answer, error) {
	var b bytes.Buffer
	r := h.report()
	err := pageTemplate.Execute(&b, struct {
		Report      statusreport.Report
		Running     statusreport.RunningReport
		Identifiers bool
		Wrong       []wrong
		Right       []string
	}{r, h.running(pageRunning), h.opts.Identifiers, wrongIn(r), rightIn(r)})
	return answer{http.StatusOK, "text/html; charset=utf-8", b.Bytes()}, err
}

// row is one number of the page.
type row struct {
	Name, Help string
	Value      float64
}

// rows are the numbers in the order of Go's fields.
func rows(of string, s statusreport.Stats) (all []row) {
	eachNumber("", reflect.ValueOf(counted[of]), func(f reflect.StructField, _ float64) {
		if v, ok := s[nameOf(f)]; ok {
			all = append(all, row{nameOf(f), f.Tag.Get("help"), v})
		}
	})
	return all
}

// firstNumbers are those of a worker that are not folded, and troubleNumbers those that are folded while they are zero.
var (
	firstNumbers   = []string{"received", "done", "failed", "rejected", "running", "held", "oldest_running_seconds", "leases_lost"}
	troubleNumbers = []string{"aside", "in_doubt", "suspect"}
)

func firstRows(of string, s statusreport.Stats) []row {
	return slices.DeleteFunc(rows(of, s), func(r row) bool {
		return !slices.Contains(firstNumbers, r.Name) && (r.Value == 0 || !slices.Contains(troubleNumbers, r.Name))
	})
}

// wrong is a fault that needs a person: the page begins with them.
type wrong struct{ What, Why string }

func wrongIn(r statusreport.Report) (all []wrong) {
	for _, w := range r.Workers {
		if w.NotLive != "" {
			all = append(all, wrong{"Not live, queue " + w.Queue, w.NotLive})
		} else if w.NotReady != "" {
			all = append(all, wrong{"Not ready, queue " + w.Queue, w.NotReady})
		}
		if n := w.Stats["stuck"]; n > 0 {
			all = append(all, wrong{fmt.Sprintf("%v handlers are stuck, queue %s", n, w.Queue), "they did not return after their contexts were cancelled"})
		}
	}
	for _, rule := range r.Limits {
		if d := rule.Stats["down_seconds"]; d > 0 {
			all = append(all, wrong{fmt.Sprintf("The counter of limit %s is down for %.0f s", rule.Name, d), "limit.Options.OnCounterDown decides about its messages"})
		}
		if n := rule.Stats["keys_down"]; n > 0 {
			all = append(all, wrong{fmt.Sprintf("The counter of limit %s fails for %v keys", rule.Name, n), "it answers for others: the log names one of these keys"})
		}
	}
	for _, relay := range r.Relays {
		if n := relay.Stats["backlog_halted"]; n > 0 {
			all = append(all, wrong{fmt.Sprintf("%v groups are halted, outbox %s", n, relay.Name), "SQS refuses an event of each, see sqsonce outbox ls"})
		}
	}
	return all
}

// rightIn says what is as it should be where nothing is wrong, of the parts that the process has.
func rightIn(r statusreport.Report) (all []string) {
	if len(r.Workers) > 0 {
		all = append(all, "No worker is unready, and no handler is stuck.")
	}
	if len(r.Limits) > 0 {
		all = append(all, "No counter of a limit is down.")
	}
	if len(r.Relays) > 0 {
		all = append(all, "No outbox is halted.")
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
