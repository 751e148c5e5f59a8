package memsqs

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

func md5Hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// md5OfAttributes is the digest of message attributes as AWS documents it: sorted by name; name, type and value each after
// its length in four bytes, and before the value one byte that says whether it is text or binary.
func md5OfAttributes(attrs map[string]messageAttribute) string {
	if len(attrs) == 0 {
		return ""
	}
	h := md5.New()
	write := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) // a hash never fails to write
		_, _ = h.Write([]byte(s))
	}
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		a := attrs[name]
		write(name)
		write(a.DataType)
		if strings.HasPrefix(a.DataType, "Binary") {
			_, _ = h.Write([]byte{2})
			write(string(a.BinaryValue))
		} else {
			_, _ = h.Write([]byte{1})
			write(*a.StringValue)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
