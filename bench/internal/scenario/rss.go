package scenario

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxRSS is the most memory a process has had, in MB; nil where there is no /proc. Not from rusage: there a child begins
// with its parent's.
func maxRSS(pid int) *float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err != nil {
				return nil
			}
			kb /= 1 << 10
			return &kb
		}
	}
	return nil
}
