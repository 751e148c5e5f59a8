package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/shown"
)

// plot is some figures of a queue over time: templates/fragments/plot.html draws it as an SVG, and writes it as a table too.
type plot struct {
	ID, Title string
	Desc      string // what the drawing says, in words
	Lines     []plotLine
	Top       string // the value at the top of the drawing; 0 is at its bottom
	From, To  time.Time
	Rows      []plotRow
}

// plotLine is one figure. Its number makes its colour and its dashes.
type plotLine struct {
	Name, Path, Now string
}

// plotRow is the last sample of a minute.
type plotRow struct {
	At     time.Time
	Values []string
}

// plotOf says which figures a plot has.
type plotOf struct {
	id, title string
	figures   []figure
	names     []string
	write     func(float64) string
	tops      []float64 // that the axis may end with; nil: 1, 2, 5 and their tenfolds
}

var (
	depthPlot = plotOf{"depth", "Messages", []figure{visibleNow, inFlight, delayed}, []string{"visible", "in flight", "delayed"}, whole, nil}
	agePlot   = plotOf{"age", "Age of the oldest message", []figure{age}, []string{"age"}, seconds, ages60}
	deadPlot  = plotOf{"dead", "Dead letters", []figure{deadVisible, deadInFlight}, []string{"visible", "in flight"}, whole, nil}
	// of the workers that answer
	ratePlot = plotOf{"rate", "Handlers a second", []figure{done, failed}, []string{"done", "failed"}, perSecond, nil}
)

var ages60 = []float64{10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, day, 2 * day, 4 * day, 7 * day, 14 * day}

const day = 24 * 3600

// The drawing's own units: it is stretched to its place.
const (
	plotWidth  = 720
	plotHeight = 100
)

// spans are how much time a drawing may show: a console that has just begun has no hour yet.
var spans = []time.Duration{5 * time.Minute, 15 * time.Minute, sampleKept}

// draw draws the samples until now.
func (of plotOf) draw(prefix string, samples []sample, now time.Time) plot {
	span := spans[len(spans)-1]
	if len(samples) == 0 {
		span = spans[0]
	} else if i := slices.IndexFunc(spans, func(d time.Duration) bool { return now.Sub(samples[0].at) <= d }); i >= 0 {
		span = spans[i]
	}
	p := plot{ID: prefix + "-" + of.id, Title: of.title, From: now.Add(-span), To: now}
	most := 0.0
	for _, s := range samples {
		for _, f := range of.figures {
			if known(s.values[f]) {
				most = max(most, s.values[f])
			}
		}
	}
	top := of.top(most)
	p.Top = of.write(top)
	desc := []string{"From " + clock(p.From) + " to " + clock(p.To)}
	for i, f := range of.figures {
		line := plotLine{Name: of.names[i], Path: linePath(samples, f, p.From, span, top), Now: "not known"}
		if n := len(samples); n > 0 && known(samples[n-1].values[f]) {
			line.Now = of.write(samples[n-1].values[f])
		}
		p.Lines = append(p.Lines, line)
		desc = append(desc, of.words(line, samples, f))
	}
	p.Desc = strings.Join(desc, ". ") + "."
	p.Rows = of.rows(samples)
	return p
}

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 }

// words says of a line what its drawing shows.
func (of plotOf) words(line plotLine, samples []sample, f figure) string {
	least, most, n := math.Inf(1), 0.0, 0
	for _, s := range samples {
		if v := s.values[f]; known(v) {
			least, most, n = min(least, v), max(most, v), n+1
		}
	}
	if n == 0 {
		return line.Name + ": no sample"
	}
	return fmt.Sprintf("%s: %s now, %s at least, %s at most", line.Name, line.Now, of.write(least), of.write(most))
}

// rows takes the last sample of each minute: all of them are too many to read.
func (of plotOf) rows(samples []sample) (rows []plotRow) {
	for i, s := range samples {
		if i+1 < len(samples) && samples[i+1].at.Truncate(time.Minute).Equal(s.at.Truncate(time.Minute)) {
			continue
		}
		row := plotRow{At: s.at}
		for _, f := range of.figures {
			text := "not known"
			if known(s.values[f]) {
				text = of.write(s.values[f])
			}
			row.Values = append(row.Values, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// top is the end of the axis: the next round number.
func (of plotOf) top(most float64) float64 {
	for _, t := range of.tops {
		if most <= t {
			return t
		}
	}
	if most <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 5} {
		if most <= n*unit {
			return n * unit
		}
	}
	return 10 * unit
}

// linePath is the d of a path. Where samples are missing there is a gap, and not a line between what was before and after it.
func linePath(samples []sample, f figure, from time.Time, span time.Duration, top float64) string {
	var b strings.Builder
	drawn := -1 // the index of the last sample that the path has come to
	for i, s := range samples {
		v := s.values[f]
		if !known(v) || s.at.Before(from) || s.at.After(from.Add(span)) { // after now: the clock was put back
			continue
		}
		next := drawn >= 0 && drawn == i-1 && s.at.Sub(samples[i-1].at) <= 3*sampleEvery
		drawn = i
		if next && i+1 < len(samples) && samples[i-1].values[f] == v && samples[i+1].values[f] == v && samples[i+1].at.Sub(s.at) <= 3*sampleEvery {
			continue // within a line that is level
		}
		x := plotWidth * s.at.Sub(from).Seconds() / span.Seconds()
		y := plotHeight * (1 - v/top)
		switch {
		case next:
			b.WriteString("L" + unit(x) + " " + unit(y))
		default:
			b.WriteString("M" + unit(x) + " " + unit(y) + "h0") // a dot, where nothing follows
		}
	}
	return b.String()
}

func unit(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func whole(v float64) string {
	if v >= 1e15 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return count(int(v))
}

func perSecond(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func seconds(v float64) string {
	return shown.Brief(time.Duration(min(v, math.MaxInt32)*float64(time.Second)), true)
}
