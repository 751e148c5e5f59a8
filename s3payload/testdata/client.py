"""Sends and receives messages with AWS's extended client.

client.py send QUEUE_URL BUCKET present|legacy   sends standard input, through S3 whatever its size
client.py receive QUEUE_URL BUCKET               receives a message, deletes it and prints it as JSON
"""

import json
import sys

from sqs_extended_client import SQSExtendedClientSession

command, queue = sys.argv[1:3]
sqs = SQSExtendedClientSession().client("sqs")
if command == "send":
    sqs.large_payload_support = sys.argv[3]
    sqs.always_through_s3 = True
    sqs.use_legacy_attribute = sys.argv[4] == "legacy"
    attributes = {"event-id": {"DataType": "String", "StringValue": "1"}}
    sqs.send_message(QueueUrl=queue, MessageBody=sys.stdin.buffer.read().decode(), MessageAttributes=attributes)
else:
    messages = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"], WaitTimeSeconds=10)["Messages"]
    handle = messages[0]["ReceiptHandle"]
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=handle)
    print(json.dumps({"body": messages[0]["Body"], "attributes": messages[0]["MessageAttributes"]}))
