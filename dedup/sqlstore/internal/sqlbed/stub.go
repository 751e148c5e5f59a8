package sqlbed

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/sqsonce/sqsonce/internal/testserver"
)

// Stub is a server that answers each login, or else each statement, with an error.
type Stub struct {
	DSN     string
	AtLogin bool
	Refusal atomic.Pointer[testserver.Refusal]
}

// NewStub starts a stub of a kind that has a server.
func (k Kind) NewStub(t testing.TB, atLogin bool) *Stub {
	t.Helper()
	s := &Stub{AtLogin: atLogin}
	s.Refusal.Store(&testserver.Refusals(1)[0])
	l := testserver.Serve(t, func(c net.Conn) { _ = k.refuse(s, bufio.NewReader(c), c) }) // until the client leaves
	s.DSN = k.server.DSNAt(l.Addr().String(), "stub") + k.parameters
	return s
}

// refusePostgreSQL speaks https://www.postgresql.org/docs/current/protocol-flow.html.
func refusePostgreSQL(s *Stub, r *bufio.Reader, w io.Writer) error {
	message := func(kind byte, body string) string {
		return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+len(body)))) + body
	}
	answer := func(severity string) string {
		f := s.Refusal.Load()
		return message('E', fmt.Sprintf("S%s\x00V%s\x00C%s\x00M%s\x00\x00", severity, severity, f.Code, f.Text))
	}
	skip := func() error {
		size := make([]byte, 4)
		if _, err := io.ReadFull(r, size); err != nil {
			return err
		}
		_, err := r.Discard(int(binary.BigEndian.Uint32(size)) - 4)
		return err
	}
	err := skip() // the startup message
	if s.AtLogin && err == nil {
		_, err = io.WriteString(w, answer("FATAL"))
		return err
	}
	ready := message('Z', "I")
	for out := message('R', "\x00\x00\x00\x00") + ready; err == nil; {
		if _, err = io.WriteString(w, out); err != nil {
			break
		}
		var kind byte
		if kind, err = r.ReadByte(); err == nil {
			err = skip()
		}
		if out = ""; kind == 'Q' || kind == 'S' { // a simple query, or the end of an extended one
			out = answer("ERROR") + ready
		}
	}
	return err
}

// refuseMySQL speaks https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html.
func refuseMySQL(s *Stub, r *bufio.Reader, w io.Writer) error {
	// exchange writes a packet, and reads one of the client.
	exchange := func(sequence byte, body []byte) error {
		head := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
		head[3] = sequence
		if _, err := w.Write(append(head, body...)); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		head[3] = 0
		_, err := r.Discard(int(binary.LittleEndian.Uint32(head)))
		return err
	}
	answer := func() []byte {
		f := s.Refusal.Load()
		return append(binary.LittleEndian.AppendUint16([]byte{0xff}, f.Number), "#HY000"+f.Text...)
	}
	const capabilities = "\x0b\xa2" + "\x21" + "\x02\x00" + "\x08\x00" // with a character set and a status inside
	err := exchange(0, []byte("\x0a8.0.0\x00"+"\x01\x00\x00\x00"+"12345678\x00"+capabilities+"\x15"+"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"+"123456789012\x00"+"mysql_native_password\x00"))
	if s.AtLogin && err == nil {
		return exchange(2, answer())
	}
	for sequence, out := byte(2), []byte("\x00\x00\x00\x02\x00\x00\x00"); err == nil; sequence, out = 1, answer() {
		err = exchange(sequence, out)
	}
	return err
}
