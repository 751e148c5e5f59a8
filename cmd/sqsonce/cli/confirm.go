package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// confirm asks before something is changed: y, or key where it must be typed. Where nobody can be asked --yes is needed; where
// somebody can, --yes does not stand for a typed key.
func (a *app) confirm(ctx context.Context, verb string, typed bool, key string) error {
	switch {
	case a.flags.yes && !(typed && a.asks):
		return nil
	case !a.asks:
		return fail(exitRefused, "nobody can be asked: %s needs --yes", verb)
	case typed:
		fmt.Fprintf(a.err, "Type the key to %s it: ", verb)
	default:
		fmt.Fprintf(a.err, "Do it? [y/N] ")
	}
	answer, err := a.readLine(ctx)
	if err != nil {
		return err
	}
	if typed && answer == key || !typed && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")) {
		return nil
	}
	return fail(exitRefused, "not confirmed: nothing was changed")
}

// readLine returns the answer, or an error when ctx ends first. The read goes on until the process ends.
func (a *app) readLine(ctx context.Context) (string, error) {
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n') // an error is no answer, and so a no
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
