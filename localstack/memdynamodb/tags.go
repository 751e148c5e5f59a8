package memdynamodb

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// tag is a tag of a table. A request may leave out a member, a table's tag has both.
type tag struct{ Key, Value *string }

// The limits of tags. Lengths are in characters.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Tagging.html
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

type tagResourceInput struct {
	ResourceArn string
	Tags        []tag
}

type untagResourceInput struct {
	ResourceArn string
	TagKeys     []string
}

type listTagsInput struct {
	ResourceArn string
	NextToken   *string
}

func (s *Server) tagResource(_ *call, in *tagResourceInput) (any, error) {
	if len(in.Tags) == 0 {
		return nil, validation("Atleast one Tag needs to be provided as Input.")
	}
	t, err := s.resource(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	tags, err := merged(t.tags, in.Tags)
	if err != nil {
		return nil, err
	}
	t.tags = tags
	return awsjson.NoBody, nil
}

func (s *Server) untagResource(_ *call, in *untagResourceInput) (any, error) {
	switch n := len(in.TagKeys); {
	case n == 0:
		return nil, validation("Atleast one Tag Key needs to be provided as Input.")
	case n > maxTags:
		return nil, tooManyTags()
	}
	for _, key := range in.TagKeys {
		if !validTag(&key, 1, maxTagKey) {
			return nil, validation("The Tag Key provided is invalid, Key: %s", key)
		}
	}
	t, err := s.resource(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	t.tags = slices.DeleteFunc(t.tags, func(g tag) bool { return slices.Contains(in.TagKeys, *g.Key) })
	return awsjson.NoBody, nil
}

// listTags returns all tags: AWS returned fifty on one page.
func (s *Server) listTags(_ *call, in *listTagsInput) (any, error) {
	t, err := s.resource(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if in.NextToken != nil {
		return nil, validation("Given NextToken is invalid")
	}
	return map[string]any{"Tags": append([]tag{}, t.tags...)}, nil
}

// resource returns the table of an ARN, locked.
func (s *Server) resource(arn string) (*table, error) {
	name := nameOf(arn)
	switch {
	case arn == "":
		return nil, validation("Invalid TableArn")
	case !strings.HasPrefix(arn, "arn:"):
		return nil, validation(invalidParameters+"ARNs must start with 'arn:': %s", arn)
	case strings.Contains(name, "/index/"):
		return nil, validation(invalidParameters+"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s", arn)
	case name == arn || validName(name) != nil:
		return nil, validation("Invalid TableArn: Invalid ResourceArn provided as input %s", arn)
	}
	t, err := s.table(arn)
	if err != nil {
		return nil, awsjson.Invalid("ResourceNotFoundException", "Requested resource not found: ResourcArn: "+arn+" not found") // AWS's spelling
	}
	return t, nil
}

// merged returns the tags with the added ones, which replace those with their keys. It refuses all if one is invalid.
func merged(tags, added []tag) ([]tag, error) {
	seen := map[string]bool{}
	all := slices.Clone(tags)
	for _, g := range added {
		switch {
		case !validTag(g.Key, 1, maxTagKey):
			return nil, validation("The Tag Key provided is invalid, Key: %s", shown(g.Key))
		case strings.HasPrefix(*g.Key, "aws:"):
			return nil, validation("Tag Key cannot be prefixed with aws:, Key: %s", *g.Key)
		case !validTag(g.Value, 0, maxTagValue):
			return nil, validation("The Tag Value provided is invalid, Value: %s", shown(g.Value))
		case seen[*g.Key]:
			return nil, validation("Duplicate Tag Keys provided as input: Duplicate Tag Key found %s", *g.Key)
		}
		seen[*g.Key] = true
		if i := slices.IndexFunc(all, func(o tag) bool { return *o.Key == *g.Key }); i >= 0 {
			all[i] = g
			continue
		}
		all = append(all, g)
	}
	if len(all) > maxTags {
		return nil, tooManyTags()
	}
	return all, nil
}

func tooManyTags() error {
	return validation("Number of Tags exceed the current limit for the provided ResourceArn")
}

// validTag checks a key or value: letters, digits, white space and some signs.
func validTag(text *string, shortest, longest int) bool {
	if text == nil {
		return false
	}
	n := utf8.RuneCountInString(*text)
	return n >= shortest && n <= longest && strings.IndexFunc(*text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune("+-=._:/", r)
	}) < 0
}

func shown(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}
