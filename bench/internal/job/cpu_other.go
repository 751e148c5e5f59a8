//go:build !unix

package job

import "errors"

// CPU returns an error: the measurements need getrusage.
func CPU() (int64, error) {
	return 0, errors.New("the benchmarks measure CPU time, which needs Linux or macOS")
}
