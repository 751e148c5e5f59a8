// Command install installs the databases that the tests start, from Debian's packages, or with -check says which are
// missing. It exits with 1 if one is missing that could not be installed.
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
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
