package realserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
)

// The probes speak just enough of each protocol to tell a server that is ready from one that still recovers after a
// crash, which takes connections already. Drivers would be dependencies of the whole module.

// askPostgreSQL sends a startup message: the answer is a request for authentication once the server is ready.
func askPostgreSQL(c net.Conn) error {
	const protocol = 3 << 16
	const names = "user\x00postgres\x00database\x00postgres\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, 8+uint32(len(names)))
	message = binary.BigEndian.AppendUint32(message, protocol)
	if _, err := c.Write(append(message, names...)); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := c.Read(answer); err != nil {
		return err
	}
	if answer[0] != 'R' {
		return fmt.Errorf("a startup message was answered with %q", answer)
	}
	return nil
}

// askMySQL reads the greeting of MariaDB or MySQL: a packet's header of 4 bytes, then the version of the protocol.
func askMySQL(c net.Conn) error {
	greeting := make([]byte, 5)
	if _, err := io.ReadFull(c, greeting); err != nil {
		return err
	}
	if greeting[4] != 10 {
		return fmt.Errorf("the greeting is %q", greeting)
	}
	return nil
}

// askRedis sends PING, which a server that still loads its data answers with an error.
func askRedis(c net.Conn) error {
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(answer, "+PONG") {
		return fmt.Errorf("PING was answered with %q", answer)
	}
	return nil
}
