package account

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// stsOf starts an STS whose callers are of the account, and makes it the endpoint of every service. Credentials are static
// ones that mean nothing.
func stsOf(t *testing.T, number *atomic.Pointer[string]) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), "Action=GetCallerIdentity") {
			t.Errorf("got %s %q, error %v; want a question to STS only", r.Method, body, err)
		}
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
			`<Arn>arn:aws:iam::%[1]s:user/a</Arn><UserId>U</UserId><Account>%[1]s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, *number.Load())
	}))
	t.Cleanup(srv.Close)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": srv.URL, "AWS_ACCESS_KEY_ID": "fake", "AWS_SECRET_ACCESS_KEY": "fake", "AWS_REGION": "eu-west-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		NumberVariable: testAccount,
	} {
		t.Setenv(name, value)
	}
	return srv
}

func TestOpen(t *testing.T) {
	other, own := "999999999999", testAccount
	for _, tt := range []struct {
		what   string
		of     string // the credentials' account
		env    map[string]string
		prefix string
		want   string // in the error; "": none
	}{
		{"the account", own, nil, testPrefix, ""},
		{"all runs", own, nil, "", ""},
		{"credentials of another account", other, nil, testPrefix, "credentials are of account 999999999999"},
		{"no account named", own, map[string]string{NumberVariable: ""}, testPrefix, NumberVariable},
		{"no number", own, map[string]string{NumberVariable: "my-account"}, testPrefix, "12 digits"},
		{"no region", own, map[string]string{"AWS_REGION": ""}, testPrefix, "AWS_REGION"},
		{"region by another variable", own, map[string]string{"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-1"}, testPrefix, "AWS_REGION"},
		{"a prefix that is none", own, nil, "orders-", "prefix"},
		{"endpoints of services too", own, map[string]string{"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1"}, testPrefix, ""},
		{"endpoint of one service alone", own, map[string]string{"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"}, testPrefix, "set AWS_ENDPOINT_URL"},
		{"endpoints that are ignored", own, map[string]string{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, testPrefix, "unset one"},
		{"endpoint with a password", own, map[string]string{"AWS_ENDPOINT_URL_SQS": "http://me:hidden@127.0.0.1:1"}, testPrefix, "with a user"},
		{"endpoint that is no URL", own, map[string]string{"AWS_ENDPOINT_URL_SQS": "hidden"}, testPrefix, "no URL"},
		{"endpoint of the profile", own, profile(t, "endpoint_url = http://127.0.0.1:1"), testPrefix, "the profile"},
		{"services of the profile", own, profile(t, "services = s\n[services s]\nsqs =\n  endpoint_url = http://127.0.0.1:1"), testPrefix, "the profile"},
		{"profile that ignores endpoints", own, profile(t, "ignore_configured_endpoint_urls = true"), testPrefix, "the profile"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var number atomic.Pointer[string]
			number.Store(&tt.of)
			stsOf(t, &number)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			a, err := Open(t.Context(), tt.prefix)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden")) {
				t.Fatalf("got error %v, want one about %q", err, tt.want)
			}
			if (a == nil) != (err != nil) {
				t.Errorf("got an account %t with error %v", a != nil, err)
			}
		})
	}
}

// profile returns the environment with a config file whose default profile has the settings.
func profile(t *testing.T, settings string) map[string]string {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("[default]\n"+settings+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"AWS_CONFIG_FILE": file}
}

// Where the endpoints of a profile are ignored, and for a run on AWS that is so, the profile may have some.
func TestProfileWhoseEndpointsAreIgnored(t *testing.T) {
	env := profile(t, "endpoint_url = http://127.0.0.1:1")
	t.Setenv("AWS_CONFIG_FILE", env["AWS_CONFIG_FILE"])
	t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil || cfg.BaseEndpoint != nil {
		t.Fatalf("endpoint %v, error %v", cfg.BaseEndpoint, err)
	}
	if err := checkProfile(cfg); err != nil {
		t.Error(err)
	}
}

// The guard's connections take the certificates of AWS_CA_BUNDLE.
func TestCABundle(t *testing.T) {
	var number atomic.Pointer[string]
	number.Store(aws.String(testAccount))
	srv := stsOf(t, &number)
	tls := httptest.NewTLSServer(srv.Config.Handler)
	t.Cleanup(tls.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ENDPOINT_URL", tls.URL)
	t.Setenv("AWS_CA_BUNDLE", file)
	if _, err := Open(t.Context(), testPrefix); err != nil {
		t.Error(err)
	}
}

// Clients of the account's configuration have the guard as their transport.
func TestConfigIsGuarded(t *testing.T) {
	var number atomic.Pointer[string]
	number.Store(aws.String(testAccount))
	stsOf(t, &number) // fails the test where another call arrives
	a, err := Open(t.Context(), testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	_, err = sqs.NewFromConfig(a.Config).DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/" + testAccount + "/orders")})
	if err == nil || !strings.Contains(err.Error(), "not of this run") || strings.Contains(err.Error(), "attempts") {
		t.Errorf("got error %v, want the guard's, of one attempt", err)
	}
}

// Credentials that were fetched again are checked again: a profile may have been edited during the run.
func TestCredentialsThatChange(t *testing.T) {
	var number atomic.Pointer[string]
	number.Store(aws.String(testAccount))
	stsOf(t, &number)
	a, err := Open(t.Context(), testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	v := &verified{number: testAccount, cfg: a.Config, chain: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		calls++
		return aws.Credentials{AccessKeyID: fmt.Sprint("fake", calls), SecretAccessKey: "fake"}, nil
	})}
	if c, err := v.Retrieve(t.Context()); err != nil || c.AccessKeyID != "fake1" {
		t.Fatalf("got %q, error %v", c.AccessKeyID, err)
	}
	number.Store(aws.String("999999999999"))
	if c, err := v.Retrieve(t.Context()); err == nil || c.AccessKeyID != "" {
		t.Errorf("got credentials %q of another account, error %v", c.AccessKeyID, err)
	}
}

// A program of the run cannot choose other credentials.
func TestEnvironment(t *testing.T) {
	var number atomic.Pointer[string]
	number.Store(aws.String(testAccount))
	stsOf(t, &number)
	a, err := Open(t.Context(), testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	env, err := a.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(env, "\n") + "\n"
	for _, want := range []string{"AWS_ACCESS_KEY_ID=fake\n", "AWS_CONFIG_FILE=" + os.DevNull + "\n", "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull + "\n", "AWS_REGION=eu-west-1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the environment has no %q", want)
		}
	}
}
