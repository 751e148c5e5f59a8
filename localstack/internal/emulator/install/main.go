// Command install installs the emulators that the tests compare with, into the user's cache folder, or with -check says
// which are missing. It exits with 1 if one could not be installed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/sqsonce/sqsonce/localstack/internal/emulator"
)

func main() {
	check := flag.Bool("check", false, "install nothing, say what is missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed := 0
	for _, e := range emulator.All() {
		if *check {
			if !e.Installed() && os.Getenv("EMULATORS") == "" {
				fmt.Printf("%s is not installed: its tests are skipped (make emulators)\n", e)
			}
			continue
		}
		fmt.Println(e)
		if err := e.Install(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = 1
		}
	}
	if !*check {
		fmt.Println("go test -count=1 ./localstack/... tests against them; without -count=1 go test may repeat what it found before")
	}
	os.Exit(failed)
}
