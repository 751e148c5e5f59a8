import com.amazon.sqs.javamessaging.AmazonSQSExtendedClient;
import com.amazon.sqs.javamessaging.ExtendedClientConfiguration;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;

/**
 * Sends and receives messages with AWS's extended client.
 *
 * <p>send QUEUE_URL BUCKET present|legacy sends standard input, through S3 whatever its size; receive QUEUE_URL BUCKET receives a
 * message, deletes it and prints it as JSON. The objects stay.
 */
class Client {
  public static void main(String[] args) throws Exception {
    var endpoint = URI.create(System.getenv("AWS_ENDPOINT_URL"));
    var s3 = S3Client.builder().endpointOverride(endpoint).forcePathStyle(true).build();
    var config = new ExtendedClientConfiguration().withPayloadSupportEnabled(s3, args[2], false).withAlwaysThroughS3(true);
    if (args[0].equals("send") && args[3].equals("present")) {
      config = config.withLegacyReservedAttributeNameDisabled();
    }
    var sqs = new AmazonSQSExtendedClient(SqsClient.builder().endpointOverride(endpoint).build(), config);
    if (args[0].equals("send")) {
      var body = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
      var id = MessageAttributeValue.builder().dataType("String").stringValue("1").build();
      sqs.sendMessage(r -> r.queueUrl(args[1]).messageBody(body).messageAttributes(Map.of("event-id", id)));
      return;
    }
    var message = sqs.receiveMessage(r -> r.queueUrl(args[1]).messageAttributeNames("All").waitTimeSeconds(10)).messages().get(0);
    sqs.deleteMessage(r -> r.queueUrl(args[1]).receiptHandle(message.receiptHandle()));
    var attributes = new HashMap<String, Object>();
    message.messageAttributes().forEach((name, value) -> attributes.put(name, Map.of("StringValue", value.stringValue())));
    new ObjectMapper().writeValue(System.out, Map.of("body", message.body(), "attributes", attributes));
  }
}
