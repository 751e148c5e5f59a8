import sys

import boto3

topic, id, body = sys.argv[1:]
text = lambda value: {"DataType": "String", "StringValue": value}
attributes = {"event-id": text(id), "event-source": text("orders"), "event-type": text("order.placed")}
boto3.client("sns").publish(TopicArn=topic, Message=body, MessageAttributes=attributes)
