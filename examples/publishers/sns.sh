#!/bin/sh
set -eu
topic=$1 id=$2 body=$3
case $id in '' | *[!A-Za-z0-9._:/-]*) echo "sns.sh: ID needs quoting" >&2; exit 2 ;; esac
# The CLI would send the contents of what it names.
case $body in file://* | fileb://* | http://* | https://*) echo "sns.sh: body is a URL" >&2; exit 2 ;; esac
text() { printf '{"DataType":"String","StringValue":"%s"}' "$1"; }
aws sns publish --topic-arn "$topic" --message "$body" \
  --message-attributes "{\"event-id\":$(text "$id"),\"event-source\":$(text orders),\"event-type\":$(text order.placed)}"
