package memdynamodb

import (
	"encoding/json"
	"errors"

	"github.com/sqsonce/sqsonce/localstack/memdynamodb/internal/attr"
)

// quick is a request that can be read in one pass when it is written as the SDKs write it: no member that means nothing
// here, the names in AWS's spelling, each value of its type. encoding/json, which goes over every byte several times,
// reads whatever else comes and words what is wrong with it.
type quick interface {
	// member reads the value of the member that is named; name is valid until then. An error leaves the request to
	// encoding/json.
	member(d reader, name []byte) error
}

// decode reads a request.
func decode[In any](body []byte) (*In, error) {
	in := new(In)
	if q, ok := any(in).(quick); ok {
		if decodeQuick(body, q) == nil {
			return in, nil
		}
		in = new(In) // without what was read so far
	}
	return in, json.Unmarshal(body, in)
}

func decodeQuick(body []byte, in quick) error {
	return attr.DecodeObject(body, func(d *attr.Decoder, name []byte) error { return in.member(reader{d}, name) })
}

var (
	errUnknown = errors.New("no member that is read quickly")
	errTwice   = errors.New("the member is there twice") // and encoding/json would merge the two
)

// reader reads members of a request. Of a member that is there twice the last counts, as with encoding/json.
type reader struct{ *attr.Decoder }

func (d reader) text(to *string) (err error) {
	*to, err = d.Text()
	return err
}

func (d reader) optional(to **string) error {
	s, err := d.Text()
	*to = &s
	return err
}

func (d reader) flag(to *bool) (err error) {
	*to, err = d.Bool()
	return err
}

func (d reader) fields(to *attr.Map) (err error) {
	*to, err = d.Fields()
	return err
}

// names adds to the names of a member that was there before, as encoding/json does.
func (d reader) names(to *map[string]string) error {
	if *to == nil {
		*to = map[string]string{}
	}
	return d.Object(func(raw []byte) error {
		name := string(raw)
		s, err := d.Text()
		(*to)[name] = s
		return err
	})
}
