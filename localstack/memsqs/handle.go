package memsqs

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// A receipt handle names a queue, one copy of a message in it and one receive of that copy. Like AWS's it is opaque to
// clients; a sum makes handles that this server did not issue recognisable.

const handleSize = 3*8 + 16

func (q *queue) handle(m *message) string {
	b := make([]byte, 0, handleSize)
	for _, n := range []uint64{q.serial, m.serial, m.receipt} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return base64.StdEncoding.EncodeToString(append(b, sum[:16]...))
}

// find returns the message of a receipt handle, nil if it is gone, and whether the handle is the newest of that message.
func (q *queue) find(handle *string) (m *message, newest bool, err error) {
	if handle == nil || *handle == "" {
		return nil, false, missingParameter("ReceiptHandle")
	}
	b, err := base64.StdEncoding.DecodeString(*handle)
	if err != nil || len(b) != handleSize {
		return nil, false, invalidHandle(*handle)
	}
	sum := sha256.Sum256(b[:handleSize-16])
	if string(sum[:16]) != string(b[handleSize-16:]) || binary.BigEndian.Uint64(b) != q.serial {
		return nil, false, invalidHandle(*handle)
	}
	m = q.messages[binary.BigEndian.Uint64(b[8:])]
	return m, m != nil && m.receipt == binary.BigEndian.Uint64(b[16:]), nil
}
