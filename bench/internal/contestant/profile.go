package contestant

import (
	"errors"
	"os"
	"runtime/pprof"
)

// profile writes what go tool pprof reads: path.cpu, and path.allocs with every allocation since the process began.
type profile struct {
	path string
	cpu  *os.File
}

func startProfile(path string) (*profile, error) {
	p := &profile{path: path}
	if path == "" {
		return p, nil
	}
	var err error
	if p.cpu, err = os.Create(path + ".cpu"); err != nil {
		return nil, err
	}
	return p, pprof.StartCPUProfile(p.cpu)
}

// stop writes both. The second time it does nothing.
func (p *profile) stop() error {
	if p.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	err := p.cpu.Close()
	p.cpu = nil
	allocs, errCreate := os.Create(p.path + ".allocs")
	if errCreate != nil {
		return errors.Join(err, errCreate)
	}
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close())
}
