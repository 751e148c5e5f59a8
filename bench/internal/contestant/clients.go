package contestant

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/bench/internal/job"
)

// httpClient keeps as many idle connections as any contestant can use. The SDK's default keeps ten per host, and nobody's
// documentation says to raise it; with the default every contestant but ours would spend its time on handshakes, which
// would measure that default and nothing else.
func httpClient() aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost, t.MaxIdleConns = 1024, 2048
	})
}

func sqsClient(j job.Job, c aws.HTTPClient) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(j.Endpoint), HTTPClient: c,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("bench", "bench", "")),
	})
}

func dynamodbClient(j job.Job, c aws.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(j.Endpoint), HTTPClient: c,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("bench", "bench", "")),
	})
}
