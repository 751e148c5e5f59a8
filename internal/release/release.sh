#!/usr/bin/env bash
# release.sh VERSION checks that the repository can be released as the version, prepares the go.mod files for it, and prints the
# commands that remain: it commits, tags and pushes nothing. If a check fails, no file is changed.
# release.sh -prepare VERSION does without the checks; release.sh -published lists the folders of the published modules.
set -euo pipefail
export GOWORK=off
apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e

fail() { echo "release: $*" >&2; exit 1; }

modules() { (cd "${1:-.}" && find . -name go.mod -not -path '*/node_modules/*' -not -path '*/testdata/*' | sed -E 's#^\./##; s#/?go\.mod$##; s#^$#.#' | sort); }

published() { modules "$@" | grep -vE '^(bench|examples)(/|$)|(^|/)internal(/|$)'; }

path_of() { sed -n 's/^module //p' "$1/go.mod"; }

# required FOLDER lists our modules that the one in the folder requires, replaced FOLDER those that it replaces.
required() { sed -nE "s#^(require)?[[:space:]]*(${root}[^ ]*) v.*#\2#p" "$1/go.mod"; }
replaced() { sed -nE "s#^(replace)?[[:space:]]*(${root}[^ ]*) =>.*#\2#p" "$1/go.mod"; }

# prepare has our modules require one another at the version. go install refuses a program whose module has a replace.
prepare() {
	for m in $(modules); do
		for other in $(required "$m"); do go mod edit -require="$other@$1" "$m/go.mod"; done
	done
	for m in $(published); do
		for other in $(replaced "$m"); do go mod edit -dropreplace="$other" "$m/go.mod"; done
	done
}

# replace FOLDER TREE has the module in the folder use our others from the tree.
replace() {
	for m in $(published "$2"); do
		other=$(path_of "$2/$m")
		[ "$other" = "$(path_of "$1")" ] || go mod edit -replace="$other=$2/$m" "$1/go.mod"
	done
}

check_version() {
	[[ $version =~ ^v[01]\.[0-9]+\.[0-9]+$ ]] || fail "VERSION='$version' is not v0.x.y or v1.x.y"
	[ "$(printf '%s\n' "$last" "$version" | sort -uV | tail -1)" = "$version" ] && [ "$last" != "$version" ] || fail "$version is not greater than the last tag, $last"
	[ -z "$(git status --porcelain)" ] || fail "the tree has changes that are not committed"
	[ "$(git branch --show-current)" = main ] || fail "releases are made on the branch main"
	grep -qE "^## ${version#v}( |$)" CHANGELOG.md || fail "CHANGELOG.md has no section ${version#v}"
	for m in $(modules); do
		[ "$m" = . ] || [ "$(path_of "$m")" = "$root/$m" ] || fail "$m/go.mod names its module $(path_of "$m"): its tag would not be found"
	done
}

# compare looks at what users of the last tag have: golden files, the API, and its sub-modules with the new main module.
compare() {
	changed=$(git diff --name-only --no-renames --diff-filter=a "$last" -- ':(glob)**/testdata/golden/**')
	[ -z "$changed" ] || fail "golden files that $last has were changed: restore them, and write new ones: $changed"
	git clone --quiet --branch "$last" . "$scratch/last" 2>/dev/null
	breaks=
	for m in $(published "$scratch/last"); do
		old=$scratch/last/$m path=$(path_of "$scratch/last/$m")
		replace "$old" "$scratch/last"
		(cd "$old" && go run $apidiff -m -w "$scratch/old.api" "$path")
		(cd "$m" && go run $apidiff -m -w "$scratch/new.api" "$path")
		changes=$(go run $apidiff -m -incompatible "$scratch/old.api" "$scratch/new.api")
		[ -z "$changes" ] || { breaks=yes; printf '%s is incompatible:\n%s\n' "$path" "$changes"; }
		replace "$old" "$PWD"
		(cd "$old" && go build -mod=mod ./...) || fail "$m of $last does not build with the new main module: give back what it uses"
	done
	[ -z "$breaks" ] || [[ $last == v0.* ]] || fail "$last promised compatibility: a new major version needs another module path"
	[ -z "$breaks" ] || [ "${last%.*}" != "${version%.*}" ] || fail "raise the minor version, not the patch version"
}

root=$(path_of .)
case ${1:-} in
-published) published; exit ;;
-prepare) prepare "$2"; exit ;;
esac
version=${1:-} last=$(git tag --list 'v*' --sort=-v:refname | head -1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check_version
if [ -n "$last" ]; then compare; else echo "there is no tag to compare with"; fi
prepare "$version"
tags=$(published | sed "s#\$#/$version#; s#^\./##")
# GitHub starts no workflow for a push of more than three tags: the one that the workflow is for is pushed alone, when it finds the others.
# https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#push
cat <<END

The go.mod files are prepared. What remains, after a look at git diff:

  git commit -am 'release $version'
$(sed 's/^/  git tag /' <<<"$tags")
  git revert --no-edit HEAD
  git push --atomic origin main $(grep -vx "$version" <<<"$tags" | xargs)
  git push origin $version
END
