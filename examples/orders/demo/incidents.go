package main

import (
	"context"
	"time"
)

// outageTime is how long the store is away.
const outageTime = 10 * time.Second

// incidents are what happens to the processes on their way: the store is away for a while, then a worker and a function are
// killed. In this order no process starts during the outage: a command that cannot check its store at its start exits. When all
// else of the standard queue is done, what was rejected there is redriven.
type incidents struct {
	p     *processes
	shown *progress
	in    *input

	begun  bool             // the outage
	back   <-chan time.Time // ends the outage; nil: the store is there
	killed []int            // IDs of the processes
	mended chan error       // gets the result of the redrive, once; nil: it has not begun
	over   bool             // the redrive
	relays [2]bool          // those of the loads' queues are killed
}

// next begins the incident that is due when so many events of each queue are booked.
func (i *incidents) next(ctx context.Context, booked map[string]int) error {
	fifo, standard := i.in.loads[0], i.in.loads[1]
	n, all := fifo.count(booked), len(fifo.events)
	switch {
	case !i.begun && n >= all*2/5:
		i.begin()
	case i.begun && i.back == nil && len(i.killed) == 0 && n >= all/2:
		return i.kill(fifo.queue, standard.queue)
	case len(i.killed) > 0 && i.mended == nil && standard.count(booked) >= len(standard.events)-standard.rejected():
		// In an empty queue there is nothing that a handler could still reject.
		if n, err := i.p.stack.messages(ctx, standard.queue); err != nil || n > 0 {
			return err
		}
		return i.mend(ctx)
	}
	return nil
}

// killRelays kills a relay of each queue when a quarter of its events was sent, and starts another.
func (i *incidents) killRelays() error {
	if i.p.stack.backend.relay == nil {
		return nil
	}
	for n, l := range i.in.loads {
		sent := i.p.stack.counted(l.queue).sent
		if i.relays[n] || sent < len(l.events)/4 {
			continue
		}
		i.relays[n] = true
		pid, err := i.p.killRelay(l.queue)
		if err != nil {
			return err
		}
		i.shown.print("killed relay %d of %s with SIGKILL after %d messages, and started another", pid, l.queue, sent)
		if err := i.p.startRelay(l.queue); err != nil {
			return err
		}
	}
	return nil
}

func (i *incidents) begin() {
	i.begun = true
	s := i.p.stack
	if s.outage == nil {
		i.shown.print("outage of the store left out: %s", s.backend.noOutage)
		return
	}
	s.outage.Cut()
	i.back = time.After(outageTime)
	i.shown.print("store refuses connections for %.0f s", outageTime.Seconds())
}

func (i *incidents) end() {
	i.p.stack.outage.Mend()
	i.back = nil
	i.shown.print("store is back")
}

// kill kills a worker of one queue and a function of the other, and starts another worker. The next invocation starts
// another process of the function.
func (i *incidents) kill(workerQueue, functionQueue string) error {
	worker, err := i.p.killWorker(workerQueue)
	if err != nil {
		return err
	}
	i.killed = append(i.killed, worker)
	i.shown.print("killed worker %d of %s with SIGKILL, and started another", worker, workerQueue)
	if err := i.p.startWorker(workerQueue); err != nil {
		return err
	}
	if i.p.functions == nil {
		i.shown.print("kill of a function left out: a deployed one is Lambda's")
		return nil
	}
	function, err := i.p.functions.kill(functionQueue)
	if err != nil {
		return err
	}
	i.killed = append(i.killed, function)
	i.shown.print("killed function %d of %s with SIGKILL", function, functionQueue)
	return nil
}
