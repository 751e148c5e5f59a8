package host

import (
	"errors"
	"testing"
)

func TestDescribed(t *testing.T) {
	t.Parallel()
	secret := errors.New("card 4929-1357 refused")
	for name, tt := range map[string]struct {
		describe func(error) string
		want     string
	}{
		"none":   {nil, secret.Error()},
		"own":    {func(err error) string { return "refused" }, "refused"},
		"empty":  {func(error) string { return "" }, ""},
		"panics": {func(err error) string { panic(err) }, "*errors.errorString: Options.ErrorText failed"},
	} {
		if err := Described(tt.describe, secret); err.Error() != tt.want || !errors.Is(err, secret) {
			t.Errorf("%s: %q, want %q", name, err, tt.want)
		}
		if err := Described(tt.describe, nil); err != nil {
			t.Errorf("%s: %v of no error", name, err)
		}
	}
}
