package sqlstore

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// schemaFiles are the migrations: schema/DIALECT/VERSION_NAME.sql. A released one is never changed; later ones only add,
// so that programs of the version before go on while a deployment replaces them.
//
//go:embed schema
var schemaFiles embed.FS

// SchemaVersion is the version of the schema that this package needs. A later one will do too.
const SchemaVersion = 2

// migrationNames are in order, version 1 first.
var migrationNames = [SchemaVersion]string{"records", "inbox"}

// statements returns those of one migration, its row in the schema's table last. Each may be run again.
func (d Dialect) statements(version int) []string {
	name := fmt.Sprintf("schema/%s/%d_%s.sql", strings.ToLower(d.engine.name), version, migrationNames[version-1])
	text, err := schemaFiles.ReadFile(name)
	if err != nil {
		panic(err) // the files are in the program
	}
	var all []string
	for s := range strings.SplitSeq(string(text), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, d.sql(s))
		}
	}
	return append(all, d.sql(versionRow(d, version)))
}

func versionRow(d Dialect, version int) string {
	row := "INSERT INTO {schema} (version, applied_at) VALUES (" + strconv.Itoa(version) + ", {now}) "
	if d.engine.ignore == "" {
		return row + "ON DUPLICATE KEY UPDATE version = version"
	}
	return row + "ON CONFLICT (version) DO NOTHING"
}

// DDL returns the statements that [Migrate] runs on an empty database, to be read, or run by another tool: all versions,
// each with the row that says it is there. They may be run again. It panics where [New] would refuse the dialect.
func DDL(d Dialect) string {
	if err := d.check(); err != nil {
		panic(err)
	}
	var b strings.Builder
	for v := 1; v <= SchemaVersion; v++ {
		for _, s := range d.statements(v) {
			b.WriteString(s + ";\n\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
