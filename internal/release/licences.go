package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	goLicenses   = "github.com/google/go-licenses@v1.6.0"
	licencesFile = "THIRD_PARTY_LICENSES.md"
	licencesHead = `# Licences of what is linked

What a program links with a package of each module, beside the standard library, on Linux. ` + "`make licences`" + ` writes this file.
`
)

// writeLicences lists the licences of all libraries that the published modules' packages link.
func writeLicences(repo string) error {
	modules, err := findModules(repo)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "licences")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	install := exec.Command("go", "install", goLicenses)
	install.Env = append(os.Environ(), "GOBIN="+scratch)
	if _, err := output(install); err != nil {
		return err
	}
	template := filepath.Join(scratch, "template")
	row := "{{range .}}| {{.Name}} | {{.Version}} | {{.LicenseName}} |\n{{end}}"
	if err := os.WriteFile(template, []byte(row), 0o644); err != nil {
		return err
	}
	text := licencesHead
	for _, m := range publishedOf(modules) {
		packages, err := publicPackages(repo, m)
		if err != nil {
			return err
		}
		args := append([]string{"report", "--template", template, "--ignore", modules[0].path}, packages...)
		cmd := onLinux(goCommand(filepath.Join(repo, m.dir)))
		cmd.Path, cmd.Args = filepath.Join(scratch, "go-licenses"), append([]string{"go-licenses"}, args...)
		rows, err := output(cmd)
		if err != nil {
			return err
		}
		if strings.Contains(rows, "Unknown") {
			return fmt.Errorf("%s: a library without a licence that go-licenses knows:\n%s", m.path, rows)
		}
		text += fmt.Sprintf("\n## %s\n\n", m.path)
		if rows = strings.TrimSpace(rows); rows == "" {
			text += "Nothing.\n"
			continue
		}
		text += "| library | version | licence |\n|---|---|---|\n" + rows + "\n"
	}
	return os.WriteFile(filepath.Join(repo, licencesFile), []byte(text), 0o644)
}

// publicPackages returns the packages of m that other modules can import.
func publicPackages(tree string, m module) (packages []string, err error) {
	list, err := output(onLinux(goCommand(filepath.Join(tree, m.dir), "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`, "./...")))
	for pkg := range strings.FieldsSeq(list) {
		if !strings.Contains(pkg, "/internal/") {
			packages = append(packages, pkg)
		}
	}
	return packages, err
}

// onLinux has cmd see the files of one system, so that everybody gets the same list.
func onLinux(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	return cmd
}
