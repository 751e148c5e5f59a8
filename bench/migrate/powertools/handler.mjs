import { BatchProcessor, EventType, processPartialResponse } from "@aws-lambda-powertools/batch";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { charge } from "./charge.mjs";

const config = new IdempotencyConfig({ eventKeyJmesPath: "id" });
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: "idempotency" });
const chargeOnce = makeIdempotent(charge, { config, persistenceStore, keyPrefix: "billing" });
const processor = new BatchProcessor(EventType.SQS);

export const handler = (event, context) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, (record) => chargeOnce(JSON.parse(record.body)), processor, { context });
};
