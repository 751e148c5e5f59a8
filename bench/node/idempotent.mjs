// Powertools for AWS Lambda's idempotency utility around the handler, keyed by the event's own ID.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { options, sockets } from "./clients.mjs";
import { handle, job } from "./session.mjs";

export function idempotent() {
  const config = new IdempotencyConfig({});
  // Outside Lambda nothing says how long a handler may take, and a crash would block its event for an hour. The time
  // that the message is hidden is the nearest thing to it.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => job.visibility * 1000 });
  const run = makeIdempotent((_id, body) => handle(body), {
    persistenceStore: new DynamoDBPersistenceLayer({
      tableName: job.table,
      awsSdkV3Client: new DynamoDBClient({ ...options, requestHandler: sockets() }),
    }),
    config,
    keyPrefix: "bench",
  });
  return (message) => run({ id: JSON.parse(message.Body).id }, message.Body);
}
