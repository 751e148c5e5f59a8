// Package account is the only way from `make aws` to AWS. It opens one account, the one that the user has named, and lets
// through nothing but calls for resources whose names begin with a run's prefix.
package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// NumberVariable is the environment variable with the number of the account.
const NumberVariable = "SQSONCE_AWS_ACCOUNT"

// What a run tells its tests, and they tell it.
const (
	PrefixVariable   = "SQSONCE_AWS_PREFIX"
	PatienceVariable = "SQSONCE_AWS_PATIENCE" // of sqstest.Backend
	RequestsLine     = "requests sent to "    // begins a line with a service and the number
)

// Account is an AWS account whose number has been checked.
type Account struct {
	Number, Region string
	// Config is for clients of all services. Its credentials are of this account, and its HTTP client is the guard's.
	Config aws.Config
	Guard  *Guard
	// Endpoints are the settings that send requests elsewhere than to AWS.
	Endpoints []string
}

var number = regexp.MustCompile(`^[0-9]{12}$`)

// Open opens the account of SQSONCE_AWS_ACCOUNT in the region of AWS_REGION, with the SDK's usual credentials and the
// endpoints of the environment. It fails if the credentials are of another account. prefix is the run's; "": all runs'.
func Open(ctx context.Context, prefix string) (*Account, error) {
	a := &Account{Number: os.Getenv(NumberVariable), Region: os.Getenv("AWS_REGION")}
	var errs []error
	if !number.MatchString(a.Number) {
		errs = append(errs, fmt.Errorf("%s is %q: set it to the 12 digits of the account to use; no other one is touched", NumberVariable, a.Number))
	}
	if a.Region == "" {
		errs = append(errs, errors.New("AWS_REGION is not set: name the region; that of a profile is not used"))
	}
	if prefix != "" && !validPrefix.MatchString(prefix) {
		errs = append(errs, fmt.Errorf("%q is not the prefix of a run, such as %s", prefix, NewPrefix()))
	}
	var err error
	if a.Endpoints, err = Endpoints(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(a.Region), config.WithHTTPClient(awshttp.NewBuildableClient()))
	if err != nil {
		return nil, err
	}
	if err := checkProfile(cfg); err != nil {
		return nil, err
	}
	transport := cfg.HTTPClient.(*awshttp.BuildableClient).GetTransport() // with the certificates of AWS_CA_BUNDLE
	transport.MaxIdleConnsPerHost = 64
	a.Guard = &Guard{Account: a.Number, Region: a.Region, Prefix: prefix, Next: transport}
	// Only now: what fetches credentials, such as a login, calls services that the guard refuses.
	chain := cfg.Credentials
	cfg.HTTPClient = &http.Client{Transport: a.Guard}
	cfg.Credentials = aws.NewCredentialsCache(&verified{chain: chain, cfg: cfg, number: a.Number})
	a.Config = cfg
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// verified gives out credentials of one account only. Credentials that end are fetched again during a run, by then perhaps
// of another account: a profile can be edited.
type verified struct {
	chain  aws.CredentialsProvider
	cfg    aws.Config
	number string
}

func (v *verified) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := v.chain.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	cfg := v.cfg.Copy()
	cfg.Credentials = credentials.StaticCredentialsProvider{Value: c}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("asking STS whose the credentials are: %w", err)
	}
	if got := aws.ToString(who.Account); got != v.number {
		return aws.Credentials{}, fmt.Errorf("the credentials are of account %s, and %s is %s: nothing was done", got, NumberVariable, v.number)
	}
	return c, nil
}

// Environment is what a program started by a run needs of the account, and nothing else: no profile, which could name
// another one.
func (a *Account) Environment(ctx context.Context) ([]string, error) {
	c, err := a.Config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	return []string{
		"AWS_ACCESS_KEY_ID=" + c.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + c.SecretAccessKey, "AWS_SESSION_TOKEN=" + c.SessionToken,
		"AWS_REGION=" + a.Region, "AWS_DEFAULT_REGION=" + a.Region, "AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		NumberVariable + "=" + a.Number,
	}, nil
}
