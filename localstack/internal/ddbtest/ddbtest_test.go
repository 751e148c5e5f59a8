package ddbtest_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/internal/ddbtest"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
)

// Where others wait for the result, the same requests are drawn each time.
func TestMain(m *testing.M) {
	if os.Getenv("CI") != "" || os.Getenv("EMULATORS") == "required" {
		for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": "500", "rapid.nofailfile": "true"} {
			if err := flag.Set(name, value); err != nil {
				panic(err) // rapid has these flags
			}
		}
	}
	testserver.Main(m)
}

func client(url string, rt http.RoundTripper) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: &url,
		HTTPClient:   &http.Client{Transport: rt},
		Retryer:      aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

func TestMemDynamoDB(t *testing.T) {
	t.Parallel()
	ddbtest.Run(t, ddbtest.Backend{
		New: func(t *testing.T) ddbtest.Account {
			srv := memdynamodb.New()
			t.Cleanup(srv.Close)
			return ddbtest.Account{
				Client:   client("http://dynamodb.local", srv),
				SweepTTL: func() error { srv.SweepTTL(); return nil },
			}
		},
	})
}

func TestDynoxide(t *testing.T) {
	t.Parallel()
	c := client(testserver.Dynoxide.Shared(t).URL, http.DefaultTransport)
	ddbtest.Run(t, ddbtest.Backend{
		New:      func(*testing.T) ddbtest.Account { return ddbtest.Account{Client: c} },
		RealTime: true,
		Known:    dynoxideDefects,
	})
}
