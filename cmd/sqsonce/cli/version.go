package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const modulePath = "github.com/sqsonce/sqsonce/cmd/sqsonce"

func (a *app) version() *cobra.Command {
	return a.command("version", "Show the version", "", "  sqsonce version --json", cobra.NoArgs, func(context.Context, []string) error {
		out := struct {
			V       int    `json:"v"`
			Version string `json:"version"`
			Go      string `json:"go"`
			System  string `json:"system"`
		}{1, moduleVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		if a.flags.json {
			return a.printJSON(out)
		}
		_, err := fmt.Fprintf(a.out, "sqsonce %s, %s, %s\n", out.Version, out.Go, out.System)
		return err
	})
}

// moduleVersion is that of this module in the program, which may be a user's own.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return info.Main.Version
}
