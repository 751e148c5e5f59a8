package main

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
)

// Lines are forwarded before and after the outage. It breaks the open connection and refuses another one.
func TestOutage(t *testing.T) {
	t.Parallel()
	o, err := netfault.Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	if r.addOutage(&stack{outage: o}); len(r.unexpected) != 1 {
		t.Errorf("before the outage: %q, want that it met no connection", r.unexpected)
	}
	open, err := dial(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask(open, "a"); err != nil {
		t.Error(err)
	}
	o.Cut()
	if ask(open, "b") == nil {
		t.Error("the connection that was open still works")
	}
	if dialAndAsk(t, o, "c") == nil {
		t.Error("a connection was made during the outage")
	}
	o.Mend()
	if err := dialAndAsk(t, o, "d"); err != nil {
		t.Errorf("after the outage: %v", err)
	}
	r = &report{}
	r.addOutage(&stack{outage: o})
	if want := "10 s, 1 connections broken, 1 refused"; r.outage != want || len(r.unexpected) > 0 {
		t.Errorf("reported %q and %q, want %q", r.outage, r.unexpected, want)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestReportWithoutOutage(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.addOutage(&stack{backend: &backend{noOutage: "SQLite is a file"}})
	if want := "left out: SQLite is a file"; r.outage != want || len(r.unexpected) > 0 {
		t.Errorf("reported %q and %q, want %q", r.outage, r.unexpected, want)
	}
}

// The processes reach the DynamoDB of the endpoint by the proxy, where TLS does not hinder that.
func TestDynamoDBBehindTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ endpoint, address, env string }{
		{"http://127.0.0.1:4566", "127.0.0.1:4566", "http://127.0.0.1:1"},
		{"http://localstack/", "localstack:80", "http://127.0.0.1:1/"},
		{"https://localhost.localstack.cloud:4566", "", "https://localhost.localstack.cloud:4566"},
	} {
		b := &backend{}
		if err := b.useDynamoDB(tt.endpoint); err != nil {
			t.Fatal(err)
		}
		s := &stack{backend: b}
		if b.address != "" {
			s.outage = &netfault.Proxy{Addr: "127.0.0.1:1"}
		}
		if got, want := s.storeEnv(), []string{"STORE=dynamodb", "AWS_ENDPOINT_URL_DYNAMODB=" + tt.env}; b.address != tt.address || !slices.Equal(got, want) {
			t.Errorf("%s: store at %q, environment %q, want %q and %q", tt.endpoint, b.address, got, tt.address, want)
		}
		if (b.address == "") != (b.noOutage != "") {
			t.Errorf("%s: store at %q, no outage for %q", tt.endpoint, b.address, b.noOutage)
		}
	}
}

// echo serves a line for each line, and returns its address.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, o *netfault.Proxy) (net.Conn, error) {
	c, err := net.Dial("tcp", o.Addr)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// dialAndAsk returns an error where the connection is reset by the dial, or later.
func dialAndAsk(t *testing.T, o *netfault.Proxy, text string) error {
	c, err := dial(t, o)
	if err != nil {
		return err
	}
	return ask(c, text)
}

func ask(c net.Conn, text string) error {
	if _, err := fmt.Fprintln(c, text); err != nil {
		return err
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && got != text+"\n" {
		err = fmt.Errorf("got %q, want %q", got, text)
	}
	return err
}
