package realserver

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below those that the system gives to outgoing connections: a client that tries again and again while
// its server is down would else be given the server's port as its own now and then, and be connected with itself. The
// nodes of a Redis cluster also listen at their port plus 10,000.
const (
	firstPort   = 12_000
	ports       = 10_000
	portSamples = 200
)

// reservePort returns a port that nothing listens on. Every process that takes ports here first takes the UDP port of
// the same number, which no database uses, and holds it: so the port stays its own while the server is down.
func reservePort() (int, io.Closer, error) {
	var last error
	for range portSamples {
		port := firstPort + rand.IntN(ports)
		address := net.JoinHostPort(Host, strconv.Itoa(port))
		reserved, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			err = l.Close()
		}
		if err == nil {
			return port, reserved, nil
		}
		last = errors.Join(err, reserved.Close())
	}
	return 0, nil, fmt.Errorf("no free port of %d: %w", portSamples, last)
}
