import java.util.Map;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.sqs.SqsClient;

/** Finds the services by the environment alone. */
class Clients {
  public static void main(String[] args) {
    try (var sqs = SqsClient.create(); var dynamodb = DynamoDbClient.create()) {
      var url = sqs.getQueueUrl(r -> r.queueName("jobs")).queueUrl();
      sqs.sendMessage(r -> r.queueUrl(url).messageBody("hello"));
      System.out.println(sqs.receiveMessage(r -> r.queueUrl(url)).messages().get(0).body());
      var key = Map.of("id", AttributeValue.fromS("a"));
      dynamodb.putItem(r -> r.tableName("records").item(key));
      System.out.println(dynamodb.getItem(r -> r.tableName("records").key(key)).item().get("id").s());
    }
  }
}
