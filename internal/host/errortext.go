package host

import "fmt"

// Described returns err with the text that describe makes of it, for what is written down of an error. It matches what err matches.
// A nil describe is Error. Where describe panics the text is err's type alone: its own may be what must not be
// written.
func Described(describe func(error) string, err error) error {
	if describe == nil || err == nil {
		return err
	}
	d := described{err: err}
	if Recover(func() { d.text = describe(err) }) != nil {
		d.text = fmt.Sprintf("%T: Options.ErrorText failed", err)
	}
	return d
}

type described struct {
	text string
	err  error
}

func (d described) Error() string { return d.text }

func (d described) Unwrap() error { return d.err }
