package ddbtest

import (
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
	"github.com/sqsonce/sqsonce/localstack/memdynamodb"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

// CI draws the same requests each time.
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

// accountAt returns an account whose calls go through rt to url.
func accountAt(url string, rt http.RoundTripper) Account {
	return Account{
		Client:  testaws.DynamoDB(rt, func(o *dynamodb.Options) { o.BaseEndpoint, o.Retryer = &url, aws.NopRetryer{} }),
		Streams: testaws.Streams(rt, func(o *dynamodbstreams.Options) { o.BaseEndpoint = &url }),
	}
}

func TestMemDynamoDB(t *testing.T) {
	t.Parallel()
	Run(t, Backend{
		New: func(t *testing.T) Account {
			home := places.Place{Region: "us-east-1", Account: "000000000000"}
			all := places.New(home, func(p places.Place) *places.Services {
				return &places.Services{Place: p, SQS: memsqs.New(), DynamoDB: memdynamodb.New(func(o *memdynamodb.Options) { o.Region = p.Region })}
			})
			t.Cleanup(all.Close)
			a := accountAt("http://dynamodb.local", all)
			a.SweepTTL = func() error { all.At(home).DynamoDB.SweepTTL(); return nil }
			return a
		},
		Known: map[string]string{"wire/members it does not know are skipped": "refuses them by name: a test must not seem to use what is not there"},
	})
}

func TestDynoxide(t *testing.T) {
	t.Parallel()
	url := testserver.Dynoxide.Shared(t).URL
	account := accountAt(url, http.DefaultTransport)
	Run(t, Backend{
		New:      func(*testing.T) Account { return account },
		RealTime: true,
		Known:    dynoxideKnown,
	})
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.name] {
			t.Errorf("two cases are named %q", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 120 {
		t.Errorf("%d cases, want at least 120", len(seen))
	}
}
