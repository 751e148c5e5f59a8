package status

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce/dedup"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/statusreport"
	"github.com/sqsonce/sqsonce/sqsworker"
)

// counted are the structs that Fields describes.
var counted = map[string]any{
	"worker": sqsworker.Stats{}, "consumer": dedup.Stats{}, "store": dynamostore.Stats{}, "relay": relayStats{}, "publisher": fifo.Stats{},
}

// notNumbers are in the answer in another place.
var notNumbers = []string{"worker Intake"}

// goFields returns the paths of all fields of a struct, and of those in it.
func goFields(t reflect.Type, path string) (all []reflect.StructField) {
	for f := range t.Fields() {
		if f.Anonymous {
			all = append(all, goFields(f.Type, path)...)
			continue
		}
		f.Name = path + f.Name
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			all = append(all, goFields(f.Type, f.Name+".")...)
			continue
		}
		all = append(all, f)
	}
	return all
}

// TestFields: each number of each component is in the table, at its place in the order of Go's fields, and nothing else is.
func TestFields(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, of := range []string{"worker", "consumer", "store", "relay", "publisher"} {
		for _, f := range goFields(reflect.TypeOf(counted[of]), "") {
			if name := of + " " + f.Name; !slices.Contains(notNumbers, name) {
				want = append(want, name+" as "+nameOf(f))
			}
		}
	}
	for _, f := range statusreport.Fields {
		got = append(got, f.Of+" "+f.Go+" as "+f.Name)
		if f.Kind != statusreport.Counter && f.Kind != statusreport.Gauge {
			t.Errorf("%s %s: kind %q", f.Of, f.Go, f.Kind)
		}
		if !strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s %s: help %q, want sentences", f.Of, f.Go, f.Help)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of the components' Stats (-) and in statusreport.Fields (+):\n%s", diff)
	}
}

// TestStoreCounts: Counts has every field of Stats.
func TestStoreCounts(t *testing.T) {
	t.Parallel()
	var want []string
	for _, f := range goFields(reflect.TypeFor[dynamostore.Stats](), "") {
		want = append(want, f.Name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(new(dynamostore.Store).Counts()))); diff != "" {
		t.Error(diff)
	}
}

// TestStatsOf: each field reaches its own name, with its value.
func TestStatsOf(t *testing.T) {
	t.Parallel()
	for of, zero := range counted {
		v := reflect.New(reflect.TypeOf(zero)).Elem()
		n := int64(0)
		want := statusreport.Stats{}
		for _, f := range goFields(v.Type(), "") {
			n++
			field := v
			for _, name := range strings.Split(f.Name, ".") {
				field = field.FieldByName(name)
			}
			switch field.Interface().(type) {
			case time.Time:
				field.Set(reflect.ValueOf(time.UnixMilli(1_800_000_000_000 + 250*n)))
				want[nameOf(f)] = 1_800_000_000 + float64(n)/4
				continue
			case time.Duration:
				field.SetInt(int64(time.Second) * n / 4)
				want[nameOf(f)] = float64(n) / 4
				continue
			}
			switch {
			case field.CanInt():
				field.SetInt(n)
			case field.CanFloat():
				field.SetFloat(float64(n) + 0.5)
				want[nameOf(f)] = float64(n) + 0.5
				continue
			default:
				continue
			}
			want[nameOf(f)] = float64(n)
		}
		if diff := cmp.Diff(want, statsOf(of, v.Interface())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
		for name, value := range statsOf(of, zero) {
			if value != 0 {
				t.Errorf("%s of a zero %T: %v", name, zero, value)
			}
		}
	}
}
