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
