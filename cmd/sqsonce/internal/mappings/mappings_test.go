package mappings

import "testing"

// A function elsewhere that has the same name is another one.
func TestInvokes(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:lambda:eu-west-1:111122223333:function:billing:live"
	for function, want := range map[string]bool{
		"billing": true, "billing:live": true, "111122223333:function:billing": true, "arn:aws:lambda:eu-west-1:111122223333:function:billing": true,
		"bill": false, "billing:test": false, "444455556666:function:billing": false, "3333:function:billing": false,
		"arn:aws:lambda:us-east-1:111122223333:function:billing": false, "arn:aws:lambda:eu-west-1:444455556666:function:billing": false,
	} {
		if got := Invokes(arn, function); got != want {
			t.Errorf("%s: %t, want %t", function, got, want)
		}
	}
}
