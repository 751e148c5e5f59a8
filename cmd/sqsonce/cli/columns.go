package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/sqsonce/sqsonce/internal/ops"
)

// column is one fact of the things that a command lists or shows. A name is empty where the fact is not.
type column[T any] struct {
	head  string // of a table on a terminal
	words string // in the help, of a line in a pipe
	label string // where one thing is shown
	json  string // see member
	value func(T) any
}

// onScreen is a value whose text on a terminal is another one than in a pipe.
type onScreen struct{ terminal, pipe string }

// cell is the value as text.
func (c column[T]) cell(a *app, thing T) string {
	switch v := known(c.json, c.value(thing)).(type) {
	case nil:
		return ""
	case time.Time:
		return a.when(v)
	case onScreen:
		if a.width == 0 {
			return v.pipe
		}
		return v.terminal
	default:
		return fmt.Sprint(v)
	}
}

// inWords names the columns of a pipe, as the help does.
func inWords[T any](columns []column[T]) string {
	var words []string
	for _, c := range columns {
		if c.words != "" {
			words = append(words, c.words)
		}
	}
	return strings.Join(words, ", ")
}

// cellsOf are the cells of things, and their heads.
func cellsOf[T any](a *app, columns []column[T], things []T) (heads []string, rows [][]string) {
	rows = make([][]string, len(things))
	for _, c := range columns {
		if a.width > 0 && c.head == "" || a.width == 0 && c.words == "" {
			continue
		}
		heads = append(heads, c.head)
		for i, thing := range things {
			rows[i] = append(rows[i], c.cell(a, thing))
		}
	}
	return heads, rows
}

// printColumns prints a table of things.
func printColumns[T any](a *app, columns []column[T], things []T) error {
	heads, rows := cellsOf(a, columns, things)
	return a.printTable(heads, rows)
}

// pairsOf are the lines of one thing. A record and attributes have several.
func pairsOf[T any](a *app, columns []column[T], thing T) (pairs []pair) {
	for _, c := range columns {
		if c.label == "" {
			continue
		}
		switch v := c.value(thing).(type) {
		case ops.Record:
			pairs = append(pairs, a.recordPairs(v)...)
		case attributes:
			pairs = append(pairs, v.pairs(c.label)...)
		default:
			pairs = append(pairs, pair{c.label, c.cell(a, thing)})
		}
	}
	return pairs
}

// objectOf is a thing in JSON.
func objectOf[T any](columns []column[T], thing T) (o object) {
	for _, c := range columns {
		if c.json != "" {
			o = append(o, member{c.json, c.value(thing)})
		}
	}
	return o
}

func objectsOf[T any](columns []column[T], things []T) []object {
	objects := make([]object, len(things)) // [] in JSON
	for i, thing := range things {
		objects[i] = objectOf(columns, thing)
	}
	return objects
}

// object is an object of JSON, whose members keep their order.
type object []member

// member is left out if its value is nil, or with ",omitzero" after its name the zero value.
type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for _, m := range o {
		value := known(m.name, m.value)
		if value == nil {
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(m.name, ",")
		text = fmt.Appendf(text, "%q:%s,", name, encoded)
	}
	return append(bytes.TrimSuffix(text, []byte(",")), '}'), nil
}

// known is a member's value, with times in UTC and errors as their texts, or nil if the member is left out.
func known(name string, value any) any {
	switch v := value.(type) {
	case time.Time:
		value = v.UTC()
	case error:
		value = v.Error()
	}
	if value != nil && strings.HasSuffix(name, ",omitzero") && reflect.ValueOf(value).IsZero() {
		return nil
	}
	return value
}
