package status

import (
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/statusreport"
)

type goField struct{ of, path string }

var fieldsByGo = func() map[goField]statusreport.Field {
	m := make(map[goField]statusreport.Field, len(statusreport.Fields))
	for _, f := range statusreport.Fields {
		m[goField{f.Of, f.Go}] = f
	}
	return m
}()

// statsOf returns the numbers of a component's Stats. What is no number, the worker's Intake, has a field of its own in the answer.
func statsOf(of string, stats any) statusreport.Stats {
	out := statusreport.Stats{}
	eachNumber("", reflect.ValueOf(stats), func(path string, value float64) {
		if f, ok := fieldsByGo[goField{of, path}]; ok {
			out[f.Name] = value
		}
	})
	return out
}

var words = regexp.MustCompile(`([a-z])([A-Z])`)

// nameOf is snake case with the unit at the end.
func nameOf(f reflect.StructField) string {
	name := strings.ToLower(words.ReplaceAllString(strings.ReplaceAll(f.Name, ".", "_"), "${1}_$2"))
	switch f.Type {
	case reflect.TypeFor[time.Duration]():
		name += "_seconds"
	case reflect.TypeFor[time.Time]():
		name += "_timestamp_seconds"
	}
	return name
}

// eachNumber calls f for each number below v, with its path; the fields of an embedded struct count as v's own.
func eachNumber(path string, v reflect.Value, f func(path string, value float64)) {
	switch x := v.Interface().(type) {
	case map[string]float64:
		for name, value := range x {
			f(name, value)
		}
		return
	case time.Duration:
		f(path, x.Seconds())
		return
	case time.Time:
		if x.IsZero() {
			f(path, 0)
		} else {
			f(path, float64(x.UnixMilli())/1000)
		}
		return
	}
	switch {
	case v.CanInt():
		f(path, float64(v.Int()))
	case v.CanFloat():
		f(path, v.Float())
	case v.Kind() == reflect.Struct:
		for field, value := range v.Fields() {
			below := path
			if !field.Anonymous {
				below = field.Name
				if path != "" {
					below = path + "." + field.Name
				}
			}
			eachNumber(below, value, f)
		}
	}
}
