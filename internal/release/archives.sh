#!/usr/bin/env bash
# archives.sh VERSION FOLDER [SYSTEM/PROCESSOR...] builds the programs of a published version for each system, as go install does, and
# writes into the folder: the programs (linux/amd64/sqsonce, which the image copies), an archive for each system, with the licences of
# the libraries, and SHA256SUMS.
# FLAGS are those of go install (default -trimpath). It is run in the root of the repository.
set -euo pipefail
version=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
programs='cmd/sqsonce cmd/sqsonce-full localstack/cmd/localaws'
root=$(sed -n 's/^module //p' go.mod)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)

# A path of its own: go install takes no GOBIN for another system. The modules stay where they are.
GOMODCACHE=$(go env GOMODCACHE)
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
export GOMODCACHE GOWORK=off CGO_ENABLED=${CGO_ENABLED-0}
unset GOBIN
for target; do
	name=sqsonce_${version#v}_${target/\//_}
	rm -rf "$out/$target" && mkdir -p "$out/$target" "$work/$name"
	for p in $programs; do
		# shellcheck disable=SC2086
		(cd "$work" && GOPATH=$work/go GOOS=${target%/*} GOARCH=${target#*/} go install ${FLAGS--trimpath} -ldflags='-s -w' "$root/$p@$version")
	done
	built=$work/go/bin/${target/\//_}
	[ "$target" != "$host" ] || built=$work/go/bin
	find "$built" -maxdepth 1 -type f -exec mv {} "$out/$target/" \;
	cp "$out/$target"/* LICENSE THIRD_PARTY_LICENSES.md "$work/$name/"
	go version -m "$out/$target"/* | awk -v own="$root" '$1 == "dep" && index($2, own) != 1 {print $2 "@" $3}' | sort -u | while read -r m; do
		mkdir -p "$work/$name/licences/$m"
		# A path in the cache has !a for A. A module without a licence ends the build.
		find "$GOMODCACHE/$(sed 's/[A-Z]/!\L&/g' <<<"$m")" -maxdepth 1 -iname '*licen[cs]e*' -exec cp -t "$work/$name/licences/$m" {} +
		if rmdir "$work/$name/licences/$m" 2>/dev/null; then echo "archives: $m has no licence" >&2; exit 1; fi
	done
	case $target in
	windows/*) (cd "$work" && rm -f "$out/$name.zip" && zip -qrX "$out/$name.zip" "$name") ;;
	*) tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime='2000-01-01 UTC' -czf "$out/$name.tar.gz" "$name" ;;
	esac
done
cd "$out"
sha256sum "sqsonce_${version#v}"_*.* >SHA256SUMS
