// Package release has the tests of release.sh, of the installation of what is released, and of the pages that tell to type something.
package release

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// output runs cmd and returns what it printed. Its error has what the command wrote to both streams.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
