// Command install installs the servers that tests run against: emulators, into the user's cache folder, with packages of
// Python and Node, and databases and a browser, from Debian's packages, which takes root. It exits with 1 if one could not be installed. With -check it installs nothing and
// says which are missing.
//
// With -unpack it downloads a server of another suite of Debian into a folder, and prints the environment variable that
// makes tests start it:
//
//	env $(go run ./internal/testserver/install -unpack mysql -into /opt/mysql) go test ./dedup/sqlstore
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

func main() {
	checkOnly := flag.Bool("check", false, "install nothing, say what is missing")
	unpack := flag.String("unpack", "", "unpack a server: mysql, redis-6, redis-8, valkey-8 or valkey-sid")
	into := flag.String("into", "", "the `folder` that it is unpacked into, which must not exist")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch {
	case *unpack != "":
		setting, err := testserver.Unpack(ctx, *unpack, *into)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(setting)
	case *checkOnly:
		check()
	default:
		os.Exit(installAll(ctx))
	}
}

// check prints the servers that tests skip because they are missing. Modes other than the default need no such list.
func check() {
	if os.Getenv("EMULATORS") != "" {
		return
	}
	missing := func(server string) {
		fmt.Printf("%s is not installed: its tests are skipped (make emulators)\n", server)
	}
	for _, e := range testserver.Emulators() {
		if !e.Installed() {
			missing(e.String())
		}
	}
	for _, p := range testserver.Packages() {
		if !p.Installed() {
			missing(p.String())
		}
	}
	for _, d := range testserver.Databases() {
		if !d.Installed() {
			missing(d.Name)
		}
	}
	if !testserver.Chromium.Installed() {
		missing(testserver.Chromium.Name)
	}
}

func installAll(ctx context.Context) (status int) {
	report := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	for _, e := range testserver.Emulators() {
		fmt.Println(e)
		report(e.Install(ctx))
	}
	for _, p := range testserver.Packages() {
		fmt.Println(p)
		report(p.Install(ctx))
	}
	for _, d := range testserver.Databases() {
		fmt.Println(d.Name)
		report(testserver.Install(ctx, d))
	}
	fmt.Println(testserver.Chromium.Name)
	report(testserver.Chromium.Install(ctx))
	fmt.Println("go test -count=1 runs tests against them; without -count=1 it may print a result from before")
	return status
}
