#!/bin/sh
# Creates the resources of the orders example: a standard and a FIFO queue with their dead-letter queues, the idempotency
# table with its TTL, and the ledger. LocalStack runs this script when it is ready. With set -e a failed command fails the
# script, and so the health check.
set -eu

queue() { # name, extra attributes as JSON members
	url=$(awslocal sqs create-queue --queue-name "$1" --attributes "{$2}" --query QueueUrl --output text)
	awslocal sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn --query Attributes.QueueArn --output text
}

redrive() { # dead-letter queue's ARN
	printf '"RedrivePolicy":"{\\"deadLetterTargetArn\\":\\"%s\\",\\"maxReceiveCount\\":\\"5\\"}"' "$1"
}

dlq=$(queue orders-dlq '')
queue orders "$(redrive "$dlq")"
fifo_dlq=$(queue orders-dlq.fifo '"FifoQueue":"true"')
queue orders.fifo "\"FifoQueue\":\"true\",$(redrive "$fifo_dlq")"

table() { # name, key
	awslocal dynamodb create-table --table-name "$1" --billing-mode PAY_PER_REQUEST \
		--attribute-definitions "AttributeName=$2,AttributeType=S" --key-schema "AttributeName=$2,KeyType=HASH"
}

table dedup id
awslocal dynamodb update-time-to-live --table-name dedup \
	--time-to-live-specification Enabled=true,AttributeName=expiration
table ledger account
