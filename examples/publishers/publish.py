import sys

import boto3

from eventkey import event_key

queue, id, group, body = sys.argv[1:]
source = "orders"
text = lambda value: {"DataType": "String", "StringValue": value}
fifo = {"MessageDeduplicationId": event_key(source, id)} if queue.endswith(".fifo") else {}
attributes = {"event-id": text(id), "event-source": text(source), "event-type": text("order.placed")}
boto3.client("sqs").send_message(
    QueueUrl=queue, MessageBody=body, MessageGroupId=group, MessageAttributes=attributes, **fifo
)
