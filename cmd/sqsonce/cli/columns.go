package cli

import "strings"

// shownColumn is a column of a list of things: its head, what the help calls it, and its cell.
type shownColumn[T any] struct {
	head  string // "": in a pipe only
	words string
	value func(*app, T) string
}

// inWords names the columns, as the help does.
func inWords[T any](columns []shownColumn[T]) string {
	var words []string
	for _, c := range columns {
		words = append(words, c.words)
	}
	return strings.Join(words, ", ")
}

// printColumns prints a table of things.
func printColumns[T any](a *app, columns []shownColumn[T], things []T) error {
	var header []string
	rows := make([][]string, len(things))
	for _, c := range columns {
		if c.head == "" && a.width > 0 {
			continue
		}
		header = append(header, c.head)
		for i, thing := range things {
			rows[i] = append(rows[i], c.value(a, thing))
		}
	}
	return a.printTable(header, rows)
}
