#!/bin/sh
set -eu
bus=$1 id=$2 data=$3
case $id in '' | *[!A-Za-z0-9._:/-]*) echo "eventbridge.sh: ID needs quoting" >&2; exit 2 ;; esac
event="{\"specversion\":\"1.0\",\"id\":\"$id\",\"source\":\"orders\",\"type\":\"order.placed\",\"data\":$data}"
detail=$(printf %s "$event" | tr '\t\n\r' '   ' | sed 's/[\\"]/\\&/g') # quoted: Detail is a string
entry="{\"EventBusName\":\"$bus\",\"Source\":\"orders\",\"DetailType\":\"order.placed\",\"Detail\":\"$detail\"}"
failed=$(aws events put-events --entries "[$entry]" --query FailedEntryCount)
[ "$failed" = 0 ] || { echo "eventbridge.sh: not published" >&2; exit 1; }
