package status

import (
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/limit"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// storeStats has the fields of dynamostore.Stats, which this package does not import.
type storeStats struct {
	OwnRetries     float64 `help:"Acquires whose reply was lost, and which the record recognised when they were sent again."`
	ForeignRecords float64 `help:"Records written, or completed under an owner of this store, by a program that does not check ownership."`
	Batches        float64 `help:"Requests with several statements."`
	Statements     float64 `help:"Statements in requests with several."`
	Fallbacks      float64 `help:"Statements refused for a reason that is not their record's, and then sent singly."`
	WriteUnits     float64 `help:"Write capacity units that all answered requests consumed."`
	ReadUnits      float64 `help:"Read capacity units that all answered requests consumed."`
}

// counted are the Stats of each kind of component.
var counted = map[string]any{
	"worker": sqsworker.Stats{}, "consumer": dedup.Stats{}, "store": storeStats{}, "limit": limit.RuleStats{}, "relay": relayStats{}, "publisher": fifo.Stats{},
}

// statsOf returns the numbers of a component's Stats. What is no number, the worker's Intake, has a field of its own in the answer.
func statsOf(stats any) statusreport.Stats {
	out := statusreport.Stats{}
	eachNumber("", reflect.ValueOf(stats), func(f reflect.StructField, value float64) { out[nameOf(f)] = value })
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

// eachNumber calls f for each number in a struct, or in a map of them, and in the structs in it, with path before the name of its field. The
// fields of an embedded struct count as the struct's own.
func eachNumber(path string, v reflect.Value, f func(field reflect.StructField, value float64)) {
	if numbers, ok := v.Interface().(map[string]float64); ok {
		for name, value := range numbers {
			f(reflect.StructField{Name: name, Type: reflect.TypeFor[float64]()}, value)
		}
		return
	}
	for field, value := range v.Fields() {
		below := path
		if !field.Anonymous {
			field.Name = path + field.Name
			below = field.Name + "."
		}
		switch x := value.Interface().(type) {
		case time.Duration:
			f(field, x.Seconds())
			continue
		case time.Time:
			if x.IsZero() {
				f(field, 0)
			} else {
				f(field, float64(x.UnixMilli())/1000)
			}
			continue
		}
		switch {
		case value.CanInt():
			f(field, float64(value.Int()))
		case value.CanFloat():
			f(field, value.Float())
		case value.Kind() == reflect.Struct:
			eachNumber(below, value, f)
		case field.Name == "KeySources":
			for i := 1; i < value.Len(); i++ {
				source := strings.ReplaceAll(sqsonce.KeySource(i).String(), "-", "_")
				f(reflect.StructField{Name: below + source, Type: value.Index(i).Type(), Tag: field.Tag}, float64(value.Index(i).Int()))
			}
		}
	}
}
