package sqldb

import (
	"regexp"
	"slices"
	"strings"
)

// tableWords are the words of a migration in which the kinds of database differ. $1 is a length.
type tableWords struct {
	// stringOf and string are the types of texts that are compared as bytes. textOf and text are those of characters.
	stringOf, string, textOf, text string
	blob                           string
	// numbered is a primary key that the database counts up, and never uses again.
	numbered string
	// table ends a table, and keyedTable one whose primary key is not numbered.
	table, keyedTable string
	// newColumn is between ADD COLUMN and the name, so that a column that exists is none that fails. If it is none, Migrate
	// skips the error.
	newColumn string
	// partialIndexes says that an index may have a condition, and namedOnce that CREATE INDEX may have IF NOT EXISTS.
	partialIndexes, namedOnce choice
}

var (
	stringLength   = regexp.MustCompile(`\{string (\d+)\}`)
	textLength     = regexp.MustCompile(`\{text (\d+)\}`)
	indexStatement = regexp.MustCompile(`^CREATE INDEX IF NOT EXISTS (\S+) ON (\S+) \((.*?)\)( WHERE .*)?$`)
	wholeIndexOnly = regexp.MustCompile(`\[(.*?)\]`)
)

// Migration completes the statements of a migration. Its words in braces are those of SQL and of tableWords. A column in
// brackets is in an index without a condition only.
func (d Dialect) Migration(text string) (all []string) {
	w := d.engine.tables
	text = stringLength.ReplaceAllString(text, w.stringOf)
	text = textLength.ReplaceAllString(text, w.textOf)
	text = strings.NewReplacer(
		"{string}", w.string, "{text}", w.text, "{blob}", w.blob, "{numbered}", w.numbered,
		" {table}", clause(w.table), " {keyed table}", clause(w.keyedTable), " {new}", clause(w.newColumn),
		"{lock tables}", clause(d.engine.outbox.Lock.Tables),
	).Replace(text)
	for one := range strings.SplitSeq(text, ";\n") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		if m := indexStatement.FindStringSubmatch(one); m != nil {
			if one = d.index(all, m[1], m[2], m[3], m[4]); one == "" {
				continue
			}
		}
		all = append(all, one)
	}
	for i, one := range all {
		all[i] = d.SQL(one)
	}
	return all
}

// index returns the statement of an index, or adds the index to its table and returns "".
func (d Dialect) index(tables []string, name, table, columns, where string) string {
	w := d.engine.tables
	if w.partialIndexes == yes {
		columns = wholeIndexOnly.ReplaceAllString(columns, "")
	} else {
		columns, where = wholeIndexOnly.ReplaceAllString(columns, "$1"), ""
	}
	if w.namedOnce == yes {
		return "CREATE INDEX IF NOT EXISTS " + name + " ON " + table + " (" + columns + ")" + where
	}
	begin := "CREATE TABLE IF NOT EXISTS " + table + " ("
	i := slices.IndexFunc(tables, func(text string) bool { return strings.Contains(text, begin) })
	if i < 0 { // of an earlier migration: Migrate skips an index that exists
		return "CREATE INDEX " + name + " ON " + table + " (" + columns + ")" + where
	}
	tables[i] = strings.Replace(tables[i], begin, begin+"\n    KEY "+name+" ("+columns+"),", 1)
	return ""
}
