package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// environment is what every AWS SDK and CLI reads: boto3 and CLI 1 know the Region by AWS_DEFAULT_REGION only. CLI 1
// calls the SQS of AWS even so, unless it has --endpoint-url.
func environment(url, region string) [][2]string {
	return [][2]string{
		{"AWS_ENDPOINT_URL", url}, {"AWS_REGION", region}, {"AWS_DEFAULT_REGION", region},
		{"AWS_ACCESS_KEY_ID", "local"}, {"AWS_SECRET_ACCESS_KEY", "local"},
	}
}

// defaultAddr is the default of all -addr. The health check of a container knows LOCALAWS_ADDR, and no flags of localaws.
func defaultAddr() string { return cmp.Or(os.Getenv("LOCALAWS_ADDR"), "127.0.0.1:4566") }

const defaultRegion = "us-east-1"

func isRegion(s string) bool { return s != "" && (awsjson.Scope{Region: s}).Valid() }

func errRegion(s string) error {
	return fmt.Errorf("-region is %q, must be a Region such as us-east-1", s)
}

func exports(url, region string) string {
	var b strings.Builder
	for _, v := range environment(url, region) {
		fmt.Fprintf(&b, "export %s=%s\n", v[0], v[1])
	}
	return b.String()
}

// printEnv is the command localaws env, whose output a shell evaluates.
func printEnv(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("localaws env", flag.ContinueOnError)
	f.SetOutput(stderr)
	addr := f.String("addr", defaultAddr(), "`address` that localaws listens on")
	region := f.String("region", defaultRegion, "`Region` that localaws has as -region")
	asJSON := f.Bool("json", false, "print a JSON object")
	if err := f.Parse(args); err != nil {
		return err
	}
	to, err := net.ResolveTCPAddr("tcp", *addr)
	switch {
	case !isRegion(*region):
		err = errRegion(*region)
	case err != nil || f.NArg() > 0:
		err = fmt.Errorf("-addr %s, arguments %q: want an address, and no arguments", *addr, f.Args())
	}
	if err != nil {
		fmt.Fprintln(stderr, "localaws env:", err)
		return err
	}
	url := localURL(to)
	if !*asJSON {
		_, err = io.WriteString(stdout, exports(url, *region))
		return err
	}
	all := map[string]string{}
	for _, v := range environment(url, *region) {
		all[v[0]] = v[1]
	}
	return json.NewEncoder(stdout).Encode(all)
}
