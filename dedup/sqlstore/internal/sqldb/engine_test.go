package sqldb

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Each engine says everything: a field that was forgotten would be an empty clause, a false, or a nil function.
func TestEngines(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		for _, field := range unset(reflect.ValueOf(*e), "") {
			t.Errorf("%s: the field%s is not set: write none, no or an empty list if the database does not need it", e.name, field)
		}
	}
	if len(unset(reflect.ValueOf(engine{}), "")) == 0 {
		t.Error("an engine without any field counts as complete")
	}
}

// unset returns the fields that have their zero value.
func unset(v reflect.Value, path string) (all []string) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			all = append(all, unset(v.Field(i), path+" "+v.Type().Field(i).Name)...)
		}
	case v.IsZero():
		all = append(all, path)
	}
	return all
}

// Only an engine's file and the lists of dialects name a kind of database. Tests name the kind on which they run, and none
// compares the kind that it has. Code that asks for it would be one more place to change for a new kind.
func TestNobodyAsksForTheKind(t *testing.T) {
	t.Parallel()
	var kinds []string
	allowed := []string{"dialect.go"}
	for _, e := range engines {
		low := strings.ToLower(e.name)
		kinds = append(kinds, e.name, low)
		allowed = append(allowed, low+".go")
	}
	isKind := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return slices.Contains(kinds, e.Name)
		case *ast.SelectorExpr:
			return slices.Contains(kinds, e.Sel.Name)
		case *ast.BasicLit:
			return slices.Contains(kinds, strings.Trim(e.Value, `"`))
		}
		return false
	}
	read := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name == "sqlbed": // of tests
			return filepath.SkipDir
		case filepath.Ext(name) != ".go" || slices.Contains(allowed, name):
			return nil
		}
		read++
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		isTest := strings.HasSuffix(name, "_test.go")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if !isTest && slices.Contains(kinds, n.Name) {
					t.Errorf("%s: %s: make the difference a field of engine", files.Position(n.Pos()), n.Name)
				}
			case *ast.BinaryExpr:
				if isTest && (n.Op == token.EQL || n.Op == token.NEQ) && (isKind(n.X) || isKind(n.Y)) {
					t.Errorf("%s: make the difference a field of sqlbed.Kind", files.Position(n.Pos()))
				}
			case *ast.CaseClause:
				if isTest && slices.ContainsFunc(n.List, isKind) {
					t.Errorf("%s: make the difference a field of sqlbed.Kind", files.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || read < 30 {
		t.Fatalf("read %d files: %v", read, err)
	}
}
