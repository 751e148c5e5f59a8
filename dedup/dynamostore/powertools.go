package dynamostore

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// PowertoolsKey returns the key that Powertools for AWS Lambda (TypeScript) gives a payload in its default configuration:
// the part of the record's id after "keyPrefix#". With a dedup.Options.Key that returns it, and the keyPrefix as the
// consumer's name, both programs have one record for an event. payload is the JSON that Powertools hashes: the function's
// argument, or the part of it that eventKeyJmesPath selects, such as a string in quotes.
//
// The key is the MD5 sum, in base64, of the JSON with the keys of objects sorted without regard to case. PowertoolsKey
// returns an error for text that is not one JSON value, and for an object with two keys that differ in case only: their
// order in the text would decide. Powertools for other languages writes and hashes JSON in different ways.
func PowertoolsKey(payload []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("dynamostore: Powertools key: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", fmt.Errorf("dynamostore: Powertools key: more than one JSON value")
	}
	var b strings.Builder
	if err := stringify(&b, v); err != nil {
		return "", fmt.Errorf("dynamostore: Powertools key: %w", err)
	}
	sum := md5.Sum([]byte(b.String()))
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}

// stringify writes v as JavaScript's JSON.stringify does after Powertools has sorted it.
func stringify(b *strings.Builder, v any) error {
	switch v := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := stringify(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case map[string]any:
		keys := slices.SortedFunc(maps.Keys(v), compareKeys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
				if strings.EqualFold(keys[i-1], k) {
					return fmt.Errorf("the keys %q and %q differ in case only", keys[i-1], k)
				}
			}
			writeString(b, k)
			b.WriteByte(':')
			if err := stringify(b, v[k]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case string:
		writeString(b, v)
	case float64:
		// encoding/json writes numbers as ECMAScript does, but for the zero with a sign.
		raw, _ := json.Marshal(v) // a decoded number is finite
		if v == 0 {
			raw = []byte("0")
		}
		b.Write(raw)
	default: // null and booleans
		raw, _ := json.Marshal(v)
		b.Write(raw)
	}
	return nil
}

// compareKeys sorts as Powertools and then as JavaScript: whatever order its keys were set in, an object has those that
// are array indices first, by number.
func compareKeys(a, b string) int {
	i, aIsIndex := arrayIndex(a)
	j, bIsIndex := arrayIndex(b)
	switch {
	case aIsIndex && bIsIndex:
		return cmp.Compare(i, j)
	case aIsIndex:
		return -1
	case bIsIndex:
		return 1
	}
	return cmp.Compare(strings.ToLower(a), strings.ToLower(b))
}

func arrayIndex(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return n, err == nil && strconv.FormatUint(n, 10) == s && n < 1<<32-1
}

// writeString escapes only what JavaScript escapes.
func writeString(b *strings.Builder, s string) {
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has a JSON form
	quoted := strings.TrimSuffix(raw.String(), "\n")
	b.WriteString(lineSeparators.Replace(quoted))
}

// lineSeparators restores the two characters that encoding/json always escapes. The first pair skips an escaped backslash,
// which would otherwise look like the start of an escape.
var lineSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
