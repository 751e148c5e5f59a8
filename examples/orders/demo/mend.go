package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/sqsonce/sqsonce/dedup/dynamostore"
	"github.com/sqsonce/sqsonce/examples/orders"
	"github.com/sqsonce/sqsonce/examples/orders/internal/redrive"
)

// unknownArticle is what the external system does not know at first: orders of it on the standard queue are rejected.
const unknownArticle = "GFT-CARD-25"

func (p *processes) unknownFile() string { return filepath.Join(p.dir, "unknown-articles") }

// rejected returns how many events of the load are rejected until the article is known.
func (l *load) rejected() (n int) {
	for _, e := range l.events {
		if slices.ContainsFunc(e.Lines, func(line orders.Line) bool { return line.SKU == unknownArticle }) {
			n++
		}
	}
	return n
}

// mend makes the article known, and redrives what was rejected.
func (i *incidents) mend(ctx context.Context) error {
	i.mended = make(chan error, 1)
	if i.p.stack.deployed {
		i.shown.print("rejects left out: the external system of a deployed function knows every article")
		i.mended <- nil
		return nil
	}
	if err := os.Remove(i.p.unknownFile()); err != nil {
		return err
	}
	i.shown.print("the external system knows article %s now: the dead-letter queue is redriven", unknownArticle)
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(i.p.redrive(ctx, w)) }()
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			i.shown.print("%s", lines.Text())
		}
		i.mended <- lines.Err()
	}()
	return nil
}

// redrive redrives the standard queue's dead letters: in this process, or, with a database or Redis, in the command that links its
// client.
func (p *processes) redrive(ctx context.Context, out io.Writer) error {
	n, archive := p.stack.names, filepath.Join(p.dir, "deleted.jsonl")
	if command := p.stack.backend.worker; command != dynamoWorker {
		cmd := exec.CommandContext(ctx, filepath.Join(p.bin, command), "redrive", archive)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), p.environment(n.standard)...), out, os.Stderr
		return cmd.Run()
	}
	store, err := dynamostore.New(p.stack.DynamoDB, n.dedup)
	if err != nil {
		return err
	}
	return redrive.Run(ctx, p.client(), p.stack.QueueURL[n.standardDLQ], store, consumer, archive, out)
}
