package main

import (
	"net"
	"slices"
	"testing"

	"github.com/sqsonce/sqsonce/internal/proof/netfault"
)

// An outage that met no connection is not as it should be. What it does to connections is in the tests of netfault.
func TestOutage(t *testing.T) {
	t.Parallel()
	o, err := netfault.Start("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	if r.addOutage(&stack{outage: o}); len(r.unexpected) != 1 {
		t.Errorf("before the outage: %q, want that it met no connection", r.unexpected)
	}
	o.Cut()
	if c, err := net.Dial("tcp", o.Addr); err == nil {
		_, _ = c.Read(make([]byte, 1)) // until it is refused
		_ = c.Close()
	}
	r = &report{}
	r.addOutage(&stack{outage: o})
	if want := "10 s, 0 connections broken, 1 refused"; r.outage != want || len(r.unexpected) > 0 {
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
