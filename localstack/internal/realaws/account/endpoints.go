package account

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

const (
	endpointVariable = "AWS_ENDPOINT_URL" // and, with _ and a service after it, of that service alone
	ignoreVariable   = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
)

// Endpoints returns the settings of the environment that send requests elsewhere than to AWS. None of them can be of one
// service alone: then an STS that is not AWS could answer for an account of AWS's.
func Endpoints() (set []string, err error) {
	var errs []error
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || name != endpointVariable && !strings.HasPrefix(name, endpointVariable+"_") {
			continue
		}
		// Neither the error nor the report has the value of one with a password in it.
		if u, err := url.Parse(value); err != nil || u.Host == "" || u.User != nil {
			errs = append(errs, fmt.Errorf("%s is no URL, or one with a user: set it to a URL such as http://127.0.0.1:4566", name))
			continue
		}
		set = append(set, v)
	}
	if len(set) > 0 && os.Getenv(endpointVariable) == "" {
		errs = append(errs, fmt.Errorf("%s without %s sends some requests to AWS and others elsewhere: set %[2]s, or unset the rest",
			strings.Join(set, ", "), endpointVariable))
	}
	if len(set) > 0 && os.Getenv(ignoreVariable) != "" {
		errs = append(errs, fmt.Errorf("%s is set together with %s: unset one of them", ignoreVariable, endpointVariable))
	}
	return set, errors.Join(errs...)
}

// checkProfile refuses endpoints of a profile, which the programs of a run do not see: they have no profile.
func checkProfile(cfg aws.Config) error {
	if strings.EqualFold(os.Getenv(ignoreVariable), "true") {
		return nil
	}
	for _, source := range cfg.ConfigSources {
		if p, ok := source.(config.SharedConfig); ok && (p.BaseEndpoint != "" || p.ServicesSectionName != "" || p.IgnoreConfiguredEndpoints != nil) {
			return fmt.Errorf("the profile %s of the AWS config file has endpoint_url, services or ignore_configured_endpoint_urls: "+
				"set %s=true for a run on AWS, or %s with a profile that has none of them", p.Profile, ignoreVariable, endpointVariable)
		}
	}
	return nil
}
