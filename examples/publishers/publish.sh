#!/bin/sh
set -eu
queue=$1 id=$2 group=$3 body=$4 source=orders
case $id in '' | *[!A-Za-z0-9._:/-]*) echo "publish.sh: ID needs a hash" >&2; exit 2 ;; esac
for value in "$group" "$body"; do # the CLI would send the contents of what they name
  case $value in file://* | fileb://* | http://* | https://*) echo "publish.sh: group or body is a URL" >&2; exit 2 ;; esac
done
text() { printf '{"DataType":"String","StringValue":"%s"}' "$1"; }
attributes="{\"event-id\":$(text "$id"),\"event-source\":$(text $source),\"event-type\":$(text order.placed)}"
case $queue in *.fifo) set -- --message-deduplication-id "$source|$id" ;; *) set -- ;; esac
# Version 1 of the CLI does not read AWS_ENDPOINT_URL for SQS.
aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} sqs send-message --queue-url "$queue" \
  --message-body "$body" --message-group-id "$group" --message-attributes "$attributes" "$@"
