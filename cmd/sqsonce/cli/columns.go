package cli

import "strings"

// shownColumn is a column of a list of things: its head, what the help calls it, and its cell.
type shownColumn[T any] struct {
	head  string // "": in a pipe only
	words string // "": on a terminal only
	value func(*app, T) string
}

// inWords names the columns of a pipe, as the help does.
func inWords[T any](columns []shownColumn[T]) string {
	var words []string
	for _, c := range columns {
		if c.words != "" {
			words = append(words, c.words)
		}
	}
	return strings.Join(words, ", ")
}

// cellsOf are the cells of things, and their heads.
func cellsOf[T any](a *app, columns []shownColumn[T], things []T) (heads []string, rows [][]string) {
	rows = make([][]string, len(things))
	for _, c := range columns {
		if a.width > 0 && c.head == "" || a.width == 0 && c.words == "" {
			continue
		}
		heads = append(heads, c.head)
		for i, thing := range things {
			rows[i] = append(rows[i], c.value(a, thing))
		}
	}
	return heads, rows
}

// printColumns prints a table of things.
func printColumns[T any](a *app, columns []shownColumn[T], things []T) error {
	heads, rows := cellsOf(a, columns, things)
	return a.printTable(heads, rows)
}
