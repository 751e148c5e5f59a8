package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
	"github.com/sqsonce/sqsonce/localstack/internal/places"
)

// The files of -dir. A saved state replaces the one before by a rename, so that a kill leaves one or the other.
const (
	stateFile    = "localaws.jsonl"
	newStateFile = "localaws.jsonl.new"
)

// The lines that are localaws' own. Those behind a place are of its services. The last line has the number of lines before it.
const (
	lineHead  = "localaws"
	linePlace = "place"
	lineEnd   = "end"
)

const stateVersion = 1

type head struct {
	Version int
	Saved   time.Time
}

type end struct{ Lines int }

// line is a line of the file.
type line struct {
	Kind  string          `json:"kind"`
	Value json.RawMessage `json:"value"`
}

// save writes the state of all services into -dir.
func (w *world) save() (err error) {
	if w.o.dir == "" {
		return nil
	}
	name := filepath.Join(w.o.dir, newStateFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	err = errors.Join(w.write(buffered), buffered.Flush(), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(name, filepath.Join(w.o.dir, stateFile))
	}
	if err != nil {
		return fmt.Errorf("-dir: the state is not saved, and the one before stays: %w", err)
	}
	return nil
}

func (w *world) write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	lines := 0
	emit := func(kind string, value any) error {
		lines++
		return encoder.Encode(struct {
			Kind  string `json:"kind"`
			Value any    `json:"value"`
		}{kind, value})
	}
	if err := emit(lineHead, head{stateVersion, time.Now()}); err != nil {
		return err
	}
	for _, s := range w.places.Load().All() {
		for _, save := range []func() error{
			func() error { return emit(linePlace, s.Place) },
			func() error { return awsjson.StateOf(s.SQS.Server).Save(emit) },
			func() error { return awsjson.StateOf(s.DynamoDB.Server).Save(emit) },
		} {
			if err := save(); err != nil {
				return err
			}
		}
	}
	return emit(lineEnd, end{lines})
}

// restore reads the state of -dir, if there is one. After an error the world is of no use.
func (w *world) restore() error {
	if w.o.dir == "" {
		return nil
	}
	if err := os.MkdirAll(w.o.dir, 0o755); err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	name := filepath.Join(w.o.dir, stateFile)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-dir: %w", err)
	}
	defer f.Close() // only read
	if n, err := w.read(bufio.NewReaderSize(f, 1<<20)); err != nil {
		return fmt.Errorf("-dir: %s is damaged in line %d: %w. Move the file away to start without it", name, n, err)
	}
	return nil
}

// read loads the lines of a file. With an error it returns the number of the line, from 1.
func (w *world) read(from *bufio.Reader) (n int, err error) {
	l := loader{w: w}
	for !l.ended {
		n++
		text, err := from.ReadBytes('\n')
		if err != nil {
			return n, fmt.Errorf("the file ends before its last line: %w", err)
		}
		var in line
		if err := awsjson.Unmarshal(text, &in); err != nil {
			return n, err
		}
		if err := l.line(n, in); err != nil {
			return n, err
		}
	}
	if rest, err := from.Peek(1); err != io.EOF {
		return n + 1, fmt.Errorf("%q follows the last line (%v)", rest, err)
	}
	return n, nil
}

// loader is a file that is read.
type loader struct {
	w      *world
	place  *places.Services // of the lines that are read; nil before the first
	dynamo bool             // the place's lines are those of DynamoDB
	ended  bool
}

func (l *loader) line(n int, in line) error {
	if first := in.Kind == lineHead; first != (n == 1) {
		return fmt.Errorf("kind %q", in.Kind)
	}
	switch in.Kind {
	case lineHead:
		var h head
		if err := awsjson.Unmarshal(in.Value, &h); err != nil {
			return err
		}
		if h.Version != stateVersion {
			return fmt.Errorf("version %d, this localaws reads %d", h.Version, stateVersion)
		}
		return nil
	case linePlace:
		var p places.Place
		if err := awsjson.Unmarshal(in.Value, &p); err != nil {
			return err
		}
		l.place, l.dynamo = l.w.places.Load().Make(p), false
		return nil
	case lineEnd:
		var e end
		if err := awsjson.Unmarshal(in.Value, &e); err != nil {
			return err
		}
		if e.Lines != n-1 {
			return fmt.Errorf("the file had %d lines before the last, and has %d", e.Lines, n-1)
		}
		l.ended = true
		return nil
	}
	if l.place == nil {
		return fmt.Errorf("kind %q before a place", in.Kind)
	}
	l.dynamo = l.dynamo || in.Kind == "dynamodb" // the first line of DynamoDB
	server := l.place.SQS.Server
	if l.dynamo {
		server = l.place.DynamoDB.Server
	}
	return awsjson.StateOf(server).Load(in.Kind, bytes.TrimSpace(in.Value))
}
