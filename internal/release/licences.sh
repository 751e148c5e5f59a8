#!/usr/bin/env bash
# Writes THIRD_PARTY_LICENSES.md: the licences of what programs link with the published modules, on one system, so that everybody
# gets the same list. It is run in the root of the repository.
set -euo pipefail
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN=$tools go install github.com/google/go-licenses@v1.6.0
echo '{{range .}}| {{.Name}} | {{.Version}} | {{.LicenseName}} |
{{end}}' >"$tools/row"
export GOWORK=off GOOS=linux GOARCH=amd64 CGO_ENABLED=0
root=$(go list -m)
{
	echo '# Licences of what is linked'
	printf '\nWhat a program links with a package of each module, beside the standard library, on Linux. `make licences` writes this file.\n'
	for m in $(internal/release/release.sh -published); do
		cd "$m"
		printf '\n## %s\n\n' "$(go list -m)"
		packages=$(go list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./... | grep -v /internal/ || echo ./...) # a program's module has nothing else
		# shellcheck disable=SC2086
		rows=$("$tools/go-licenses" report --template "$tools/row" --ignore "$root" $packages 2>"$tools/log") || { cat "$tools/log" >&2; exit 1; }
		rows=$(grep . <<<"$rows" || true)
		case $rows in
		*Unknown*) echo "a library without a licence that go-licenses knows: $rows" >&2; exit 1 ;;
		'') echo 'Nothing.' ;;
		*) printf '| library | version | licence |\n|---|---|---|\n%s\n' "$rows" ;;
		esac
		cd - >/dev/null
	done
} >"$tools/list"
mv "$tools/list" THIRD_PARTY_LICENSES.md
