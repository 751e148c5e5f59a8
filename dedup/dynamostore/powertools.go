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
	"unicode/utf16"
	"unicode/utf8"
)

// PowertoolsKey returns the key that Powertools for AWS Lambda (TypeScript) gives a payload in its default configuration:
// the part of the record's id after "keyPrefix#". With a dedup.Options.Key that returns it, and the keyPrefix as the
// consumer's name, both programs have one record for an event. payload is the JSON that Powertools hashes: the function's
// argument, or the part of it that eventKeyJmesPath selects, such as a string in quotes.
//
// The key is the MD5 sum, in base64, of the JSON with the keys of objects sorted without regard to case. PowertoolsKey
// returns an error if two events could have one key, or one event two:
//
//   - text that isn't one JSON value, or not Unicode, such as half of a surrogate pair.
//   - an object with two keys that differ in case only, because their order in the text would decide.
//   - an object with the key __proto__, which Powertools drops.
//   - an object of several keys with a capital sigma in one of them, whose lower case depends on the letters around it.
//
// Powertools for other languages writes and hashes JSON in different ways.
//
// # One table for both
//
// The first five attributes of a record are those of Powertools' idempotency utility, with their meanings. Both programs
// can use one table, and each respects the other's records. But Powertools doesn't check ownership. It updates and deletes
// without a condition. While a function of Powertools uses the same key, a completed event may run again. A function that
// returns after its timeout completes the record of the owner that took over, and a function that fails deletes it. The
// holder of that record gets [sqsonce.ErrLeaseLost] with its next write, and also [dedup.ErrForeignWriter] if the foreign
// write can be recognised. A function that completes such a record also sets its end of retention, and the holder's
// complete restores it.
//
// If Powertools validates payloads (payloadValidationJmesPath), it refuses a completed event whose record lacks a hash of
// the payload. Its function fails with IdempotencyValidationError. A dedup.Options.PayloadHash that returns PowertoolsKey
// of the same part of the payload stores the hash that Powertools for TypeScript computes.
//
// A result of dedup.Do is JSON text for Powertools for TypeScript, whose own results are values. A completed message has no
// result. docs/migrate.md has the steps of a move.
func PowertoolsKey(payload []byte) (string, error) {
	if !isUnicode(payload) {
		return "", fmt.Errorf("dynamostore: Powertools key: the payload is not Unicode")
	}
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
			if k == "__proto__" {
				return fmt.Errorf("the key %q is not kept", k)
			}
			if len(keys) > 1 && strings.ContainsRune(k, 'Σ') {
				return fmt.Errorf("the order of the key %q is not known", k)
			}
			if i > 0 {
				b.WriteByte(',')
				if toLower(keys[i-1]) == toLower(k) {
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
	// JavaScript compares code units of UTF-16: a surrogate is less than U+E000.
	return slices.Compare(utf16.Encode([]rune(toLower(a))), utf16.Encode([]rune(toLower(b))))
}

// toLower is JavaScript's toLowerCase, but for a capital sigma. One letter becomes two characters there.
func toLower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "İ", "i\u0307")) }

// isUnicode reports whether JSON is UTF-8 and each escape of half of a surrogate pair has its other half. encoding/json
// would replace the others by U+FFFD.
func isUnicode(raw []byte) bool {
	for rest := raw; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			return utf8.Valid(raw)
		}
		first, n := codeUnit(rest[i:])
		rest = rest[i+n:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, n := codeUnit(rest)
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return false
		}
		rest = rest[n:]
	}
}

// codeUnit returns what the escape at the begin of raw stands for, and its length. It is 0 for any other escape, and for none.
func codeUnit(raw []byte) (unit rune, n int) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, 2
	}
	v, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0, 2
	}
	return rune(v), 6
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
