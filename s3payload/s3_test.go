package s3payload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/sqsonce/sqsonce/fifo"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testaws"
	"github.com/sqsonce/sqsonce/internal/testserver"
	"github.com/sqsonce/sqsonce/localstack/memsqs"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// memS3 is an S3 in memory, under a real client, with the buckets of its map.
type memS3 struct {
	mu      sync.Mutex
	buckets map[string]map[string][]byte
	calls   []string // method and path, in the order of their arrival
	puts    map[string]int
	headers []http.Header // of puts
	// answer replaces the answer to a request, unless it returns nil. It is not called under the lock.
	answer func(*http.Request) (*http.Response, error)
}

func newS3(buckets ...string) *memS3 {
	m := &memS3{buckets: map[string]map[string][]byte{}, puts: map[string]int{}}
	for _, b := range buckets {
		m.buckets[b] = map[string][]byte{}
	}
	return m
}

func (m *memS3) client(optFns ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://s3.local"), UsePathStyle: true,
		HTTPClient: &http.Client{Transport: m}, Credentials: testaws.Credentials,
	}, optFns...)
}

func (m *memS3) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	m.calls = append(m.calls, r.Method+" "+r.URL.Path)
	answer := m.answer
	m.mu.Unlock()
	if answer != nil {
		if resp, err := answer(r); resp != nil || err != nil {
			return resp, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	objects, ok := m.buckets[bucket]
	if !ok {
		return failed(http.StatusNotFound, "NoSuchBucket"), nil
	}
	if r.Method == http.MethodPut {
		objects[key] = body
		m.puts[key]++
		m.headers = append(m.headers, r.Header)
		return reply(http.StatusOK, ""), nil
	}
	content, ok := objects[key]
	if !ok {
		return failed(http.StatusNotFound, "NoSuchKey"), nil
	}
	return reply(http.StatusOK, string(content)), nil
}

// keys returns the keys of a bucket's objects.
func (m *memS3) keys(bucket string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for k := range m.buckets[bucket] {
		keys = append(keys, k)
	}
	return keys
}

func (m *memS3) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.calls)
}

func (m *memS3) answerWith(f func(*http.Request) (*http.Response, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

func reply(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Length": {fmt.Sprint(len(body))}, "X-Amz-Request-Id": {"r"}},
	}
}

func failed(status int, code string) *http.Response {
	return reply(status, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
}

// queue is a queue of an SQS in memory, and a publisher to it.
type queue struct {
	*testing.T
	srv    *memsqs.Server
	client *sqs.Client
	url    string
	pub    *fifo.Publisher
}

func newQueue(t *testing.T, name string, attrs map[string]string) *queue {
	t.Helper()
	q := &queue{T: t, srv: memsqs.New()}
	q.client = testaws.SQS(q.srv)
	q.url = testaws.Queue(t, q.client, name, attrs)
	q.pub = must.Get(fifo.NewPublisher(q.client, q.url, "orders"))(t)
	return q
}

// text returns n bytes.
func text(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
