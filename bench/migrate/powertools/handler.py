import json

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function

from charge import charge

config = IdempotencyConfig(event_key_jmespath="id")
store = DynamoDBPersistenceLayer(table_name="idempotency")
processor = BatchProcessor(event_type=EventType.SQS)


@idempotent_function(data_keyword_argument="order", config=config, persistence_store=store, key_prefix="billing")
def charge_once(order):
    return charge(order)


def handler(event, context):
    config.register_lambda_context(context)
    return process_partial_response(event, lambda record: charge_once(order=json.loads(record.body)), processor, context)
