// Package node installs the contestants that are written for Node, in the exact versions of package-lock.json.
package node

import (
	"context"
	"embed"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

//go:embed package.json package-lock.json *.mjs
var files embed.FS

// Install returns the folder with the scripts and their packages.
func Install(ctx context.Context) (string, error) {
	return testserver.InstallNode(ctx, "bench/node", files)
}
