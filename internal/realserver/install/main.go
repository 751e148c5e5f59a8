// Command install installs the databases that the tests start, from Debian's packages, or with -check says which are
// missing. It exits with 1 if one is missing that could not be installed.
//
// With -unpack it brings a server of another suite of Debian into a folder, and prints the setting of the environment
// with which the tests start it:
//
//	env $(go run ./internal/realserver/install -unpack mysql -into /opt/mysql) go test ./dedup/sqlstore
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/sqsonce/sqsonce/internal/realserver"
)

func main() {
	check := flag.Bool("check", false, "install nothing, say what is missing")
	unpack := flag.String("unpack", "", "unpack a server: mysql, redis-6, redis-8, valkey-8 or valkey-sid")
	into := flag.String("into", "", "the `folder`, a new one, that it is unpacked into")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *unpack != "" {
		setting, err := realserver.Unpack(ctx, *unpack, *into)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(setting)
		return
	}
	failed := 0
	for _, k := range realserver.All() {
		if *check {
			if !k.Installed() && os.Getenv("EMULATORS") == "" {
				fmt.Printf("%s is not installed: its tests are skipped (make emulators)\n", k.Name)
			}
			continue
		}
		fmt.Println(k.Name)
		if err := realserver.Install(ctx, k); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = 1
		}
	}
	os.Exit(failed)
}
