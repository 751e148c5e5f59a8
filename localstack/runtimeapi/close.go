package runtimeapi

import (
	"context"
	"fmt"
	"slices"
)

// Close refuses further invocations, waits for those that run, and then ends the processes: SIGTERM and 500 ms later
// SIGKILL to one that registered an extension, SIGKILL to the others. When ctx ends first, everything is killed and its
// cause returned. Close returns when all processes are gone.
func (f *Function) Close(ctx context.Context) error {
	f.stopWatch()
	f.mu.Lock()
	f.closeLocked()
	f.mu.Unlock()

	var err error
	for inv := f.anyRunning(); inv != nil && err == nil; inv = f.anyRunning() {
		select {
		case <-inv.ended:
		case <-ctx.Done():
			err = fmt.Errorf("runtimeapi: closed with invocations running: %w", context.Cause(ctx)) // killed below
		}
	}
	f.mu.Lock()
	processes := slices.Clone(f.processes)
	for _, p := range processes {
		p.terminateLocked()
	}
	f.mu.Unlock()
	for _, p := range processes {
		select {
		case <-p.gone:
		case <-ctx.Done():
			f.kill()
			<-p.gone
		}
	}
	return err
}

func (f *Function) closeLocked() {
	if !f.closed {
		f.closed = true
		close(f.closing)
	}
}

func (f *Function) anyRunning() *invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		if len(p.running) > 0 {
			return p.running[0]
		}
	}
	return nil
}

// kill ends every process at once.
func (f *Function) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeLocked()
	for _, p := range f.processes {
		p.killLocked()
	}
}
