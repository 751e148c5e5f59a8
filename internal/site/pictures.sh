#!/bin/sh
# pictures.sh writes docs/images/demo.svg and docs/images/top.svg from what make demo and sqsonce top print.
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
night=
trap '[ -z "$night" ] || kill "$night"; rm -rf "$dir"' EXIT

draw() { # NAME TITLE DESCRIPTION, of the file NAME in $dir
	LC_ALL=C awk -v title="$2" -v desc="$3" -f internal/site/terminal.awk "$dir/$1" >"$dir/$1.svg"
	mv "$dir/$1.svg" "docs/images/$1.svg"
}

make --no-print-directory demo >"$dir/printed"
# Without the progress of each queue.
{ echo '$ make demo'; grep -v -e '^cd ' -e ' booked$' "$dir/printed" | sed 's/^\(.\{108\}\).*/\1…/'; } >"$dir/demo"
grep -q '^demo: .* 0 lost, 0 doubled' "$dir/demo"
draw demo 'make demo' 'What make demo prints: it kills workers, stops the store, redrives, and counts no order as lost or doubled.'

make --no-print-directory cli
(cd examples && go build -o ../bin/ ./orders/incident ./orders/worker)
worker=http://127.0.0.1:18081
bin/incident -addr 127.0.0.1:45661 -status 127.0.0.1:18081 -dir "$dir/night" >"$dir/incident" &
night=$!
until grep -q 'messages are in' "$dir/incident"; do
	kill -0 "$night" # it has ended: so does this
	sleep 1
done
export AWS_ENDPOINT_URL=http://127.0.0.1:45661 AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local
export SQSONCE_QUEUE=orders SQSONCE_CONSUMER=billing SQSONCE_TABLE=dedup XDG_STATE_HOME="$dir"
: >"$dir/night/unknown-articles"
bin/sqsonce dlq redrive --state released --rate 200 --yes
# The screen after 14 s: what top drew last.
script -qec "stty cols 132 rows 24; timeout --preserve-status -s INT 14 bin/sqsonce top --worker $worker 2>'$dir/said'" /dev/null </dev/null >"$dir/printed"
{
	echo "\$ sqsonce top --worker $worker"
	awk 'BEGIN { RS = "\033\\[H" } { screen = $0 } END { printf "%s", screen }' "$dir/printed" | tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g'
} >"$dir/top"
grep -q 'EMPTY IN' "$dir/top"
draw top 'sqsonce top' 'What sqsonce top prints: a worker that drains the queue orders, its rates, and the counts of the queue and its dead-letter queue.'
