package host

import "testing"

func TestParseRedrivePolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, target string
		most         int
		bad          bool
	}{
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":7}`, target: "a", most: 7},
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":"7"}`, target: "a", most: 7},
		{text: `{"deadLetterTargetArn":"a"}`, target: "a"},
		{text: `{"maxReceiveCount":-1}`},
		{text: `{"maxReceiveCount":1.5}`},
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":"many"}`, bad: true},
		{text: `{`, bad: true},
		{text: ``, bad: true},
	} {
		target, most, err := ParseRedrivePolicy(tt.text)
		if target != tt.target || most != tt.most || (err != nil) != tt.bad {
			t.Errorf("%s: got %q, %d, %v; want %+v", tt.text, target, most, err, tt)
		}
	}
}

func TestCrashCosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		most, received, behind int
		moved, want            bool
	}{
		{5, 4, 4, false, true}, {5, 3, 4, false, false}, {5, 4, 3, false, false}, {5, 5, 5, true, false}, {5, 6, 0, false, false},
		{3, 2, 2, false, true}, {2, 1, 1, false, false}, {2, 2, 1, false, true}, {2, 2, 0, false, false},
		{1, 1, 1, false, false}, {1, 2, 0, false, false}, {0, 3, 3, false, false},
	} {
		if got := CrashCosts(tt.most, tt.received, tt.behind, tt.moved); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
