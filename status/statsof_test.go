package status

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sqsonce/sqsonce"
	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/internal/statusreport"
)

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

// TestStoreCounts: Counts has every field of Stats, and storeStats has too.
func TestStoreCounts(t *testing.T) {
	t.Parallel()
	names := func(t reflect.Type) (all []string) {
		for _, f := range goFields(t, "") {
			all = append(all, f.Name)
		}
		slices.Sort(all)
		return all
	}
	counts := slices.Sorted(maps.Keys(new(dynamostore.Store).Counts()))
	if diff := cmp.Diff(names(reflect.TypeFor[dynamostore.Stats]()), counts) + cmp.Diff(names(reflect.TypeFor[storeStats]()), counts); diff != "" {
		t.Error(diff)
	}
}

// TestStatsOf: each field reaches its own name, with its value, and says what it means.
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
			if help := f.Tag.Get("help"); field.Kind() != reflect.String && !strings.HasSuffix(help, ".") {
				t.Errorf("%s %s: help %q, want sentences", of, f.Name, help)
			}
			if f.Name == "KeySources" {
				for i := 1; i < field.Len(); i++ {
					n++
					field.Index(i).SetInt(n)
					want["key_sources_"+strings.ReplaceAll(sqsonce.KeySource(i).String(), "-", "_")] = float64(n)
				}
				continue
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
		if diff := cmp.Diff(want, statsOf(v.Interface())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", of, diff)
		}
		for name, value := range statsOf(zero) {
			if value != 0 {
				t.Errorf("%s of a zero %T: %v", name, zero, value)
			}
		}
	}
}
