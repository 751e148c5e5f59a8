import json
import sys

import boto3

bus, id, data = sys.argv[1:]
event = {"specversion": "1.0", "id": id, "source": "orders", "type": "order.placed", "data": json.loads(data)}
entry = {"EventBusName": bus, "Source": "orders", "DetailType": event["type"], "Detail": json.dumps(event)}
answer = boto3.client("events").put_events(Entries=[entry])
if answer["FailedEntryCount"]:
    sys.exit(f"not published: {answer['Entries']}")
