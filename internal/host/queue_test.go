package host

import (
	"strings"
	"testing"
	"time"
)

func TestQueueURLProblem(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/123456789012/orders":                               "",
		"https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo":                          "",
		"http://localhost:9324/000000000000/orders":                                             "",
		"http://sqs.eu-west-1.localhost.localstack.cloud:4566/000000000000/o":                   "",
		"http://127.0.0.1:4566/queue/eu-west-1/000000000000/" + strings.Repeat("q", 80):         "",
		"https://sqs.eu-west-1.amazonaws.com/123456789012/" + strings.Repeat("q", 75) + ".fifo": "",
		"":       "is empty",
		"orders": "must be a URL",
		"arn:aws:sqs:eu-west-1:123456789012:orders":           "must be a URL",
		"ftp://host/1/orders":                                 "must be a URL",
		"https:///1/orders":                                   "must be a URL",
		"https://host/1/orders?Action=SendMessage":            "must be a URL",
		"https://host/1/orders#top":                           "must be a URL",
		"https://ann:secret@host/1/orders":                    "must be a URL",
		"ann:sec/secret@host":                                 "must be a URL",
		"https://ann:secret?x@host/1/orders":                  "must be a URL",
		"https://ann#secret@host/1/orders":                    "must be a URL",
		"https://host/1/orders#secret":                        "must be a URL",
		"https://host/1/orders?token=secret":                  "must be a URL",
		"https://host":                                        "must end in a queue's name",
		"https://host/1/":                                     "must end in a queue's name",
		"https://host/1/ord.ers":                              "must end in a queue's name",
		"https://host/1/orders%2Efifo":                        "must end in a queue's name",
		"https://host/1/.fifo":                                "must end in a queue's name",
		"https://host/1/" + strings.Repeat("q", 81):           "must end in a queue's name",
		"https://host/1/" + strings.Repeat("q", 76) + ".fifo": "must end in a queue's name",
	} {
		if got := QueueURLProblem(url); want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%q: got %q, want %q without a secret", url, got, want)
		}
	}
}

func TestQueueARN(t *testing.T) {
	t.Parallel()
	for arn, url := range map[string]string{
		"arn:aws:sqs:eu-west-1:123456789012:orders.fifo":       "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo",
		"arn:aws-cn:sqs:cn-north-1:123456789012:orders":        "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders",
		"arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders": "https://sqs.us-gov-west-1.amazonaws.com/123456789012/orders",
	} {
		q, err := ParseQueueARN(arn)
		if err != nil || q.String() != arn || q.URL() != url {
			t.Errorf("%s: got %s, URL %s, error %v, want URL %s", arn, q, q.URL(), err, url)
		}
		if back, ok := ARNOfURL(url); !ok || back != q {
			t.Errorf("%s: got ARN %s (%t), want %s", url, back, ok, arn)
		}
	}
	for _, arn := range []string{"", "orders", "arn:aws:sns:eu-west-1:123456789012:topic", "arn:aws:sqs:eu-west-1:123456789012", "arn:aws:sqs:::orders", "arn:aws:sqs:r:1:"} {
		if q, err := ParseQueueARN(arn); err == nil {
			t.Errorf("%q: got %v, want an error", arn, q)
		}
	}
}

// TestARNOfURL: workers that know a queue by different URLs give its messages the same keys.
func TestARNOfURL(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"sqs.us-west-2.amazonaws.com":                                       "aws us-west-2",
		"sqs-fips.us-west-2.amazonaws.com":                                  "aws us-west-2",
		"sqs.us-west-2.api.aws":                                             "aws us-west-2",
		"sqs-fips.us-west-2.api.aws":                                        "aws us-west-2",
		"us-west-2.queue.amazonaws.com":                                     "aws us-west-2",
		"queue.amazonaws.com":                                               "aws us-east-1",
		"vpce-0d34cb2-vb3a1qbc.sqs.us-west-2.vpce.amazonaws.com":            "aws us-west-2",
		"vpce-0d34cb2-vb3a1qbc-us-west-2a.sqs.us-west-2.vpce.amazonaws.com": "aws us-west-2",
		"vpce-0d34cb2-vb3a1qbc.sqs-fips.us-west-2.vpce.amazonaws.com":       "aws us-west-2",
		"sqs.us-gov-west-1.amazonaws.com":                                   "aws-us-gov us-gov-west-1",
		"sqs.us-gov-east-1.api.aws":                                         "aws-us-gov us-gov-east-1",
		"sqs.cn-north-1.amazonaws.com.cn":                                   "aws-cn cn-north-1",
		"sqs.cn-northwest-1.api.amazonwebservices.com.cn":                   "aws-cn cn-northwest-1",
		"cn-north-1.queue.amazonaws.com.cn":                                 "aws-cn cn-north-1",
		"vpce-0d34cb2-vb3a1qbc.sqs.cn-north-1.vpce.amazonaws.com.cn":        "aws-cn cn-north-1",
		"sqs.ap-southeast-3.amazonaws.com:443":                              "aws ap-southeast-3",
	} {
		partition, region, _ := strings.Cut(want, " ")
		arn := QueueARN{Partition: partition, Region: region, Account: "123456789012", Name: "orders.fifo"}
		if got, ok := ARNOfURL("https://" + host + "/123456789012/orders.fifo"); !ok || got != arn {
			t.Errorf("%s: got %v (%t), want %v", host, got, ok, arn)
		}
	}
	for _, url := range []string{
		"::", "https://host/123456789012/orders", "http://localhost:4566/000000000000/orders",
		"https://sqs.us-west-2.amazonaws.com/orders", "https://sqs.us-west-2.amazonaws.com/1/orders",
		"https://sqs.us-west-2.amazonaws.com/queue/123456789012/orders", "https://sqs.us-west-2.amazonaws.com/123456789012/or.ders",
		"https://sqs.amazonaws.com/123456789012/orders", "https://sqs.internal.amazonaws.com/123456789012/orders",
		"https://sqs.us-west-2.amazonaws.com.example.org/123456789012/orders", "https://sqs.us-west-2.localhost.localstack.cloud:4566/123456789012/orders",
		"https://sqs.cn-north-1.amazonaws.com/123456789012/orders", "https://sqs.us-west-2.amazonaws.com.cn/123456789012/orders",
		"https://us-east-1.queue.example.com/123456789012/orders", "https://sns.us-west-2.amazonaws.com/123456789012/orders",
		"https://x.sqs.us-west-2.vpce.amazonaws.com/123456789012/orders",
	} {
		if q, ok := ARNOfURL(url); ok {
			t.Errorf("%q: got %v, want none: not of AWS's form", url, q)
		}
	}
}

func TestEntryIndex(t *testing.T) {
	t.Parallel()
	for i := range MaxBatch {
		if got, ok := EntryIndex(EntryID(i), MaxBatch); !ok || got != i {
			t.Errorf("entry %d: got %d, %t", i, got, ok)
		}
	}
	for _, id := range []string{"", "x", "-1", "10", "1 "} {
		if got, ok := EntryIndex(&id, MaxBatch); ok {
			t.Errorf("%q: got %d, want none", id, got)
		}
	}
	if _, ok := EntryIndex(nil, MaxBatch); ok {
		t.Error("nil: got an entry")
	}
}

func TestLongestReturn(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		fifo   bool
		queue  time.Duration
		hasDLQ bool
		dead   time.Duration
		want   time.Duration
	}{
		{"not known", false, 0, true, 14 * day, 0},
		{"no dead-letter queue", false, 4 * day, false, 0, 4*day + 12*time.Hour},
		{"no dead-letter queue, FIFO", true, 4 * day, false, 0, 4*day + 12*time.Hour},
		{"standard", false, 4 * day, true, 14 * day, 18*day + 12*time.Hour},
		{"standard, shorter dead-letter queue", false, 14 * day, true, 4 * day, 28*day + 12*time.Hour},
		{"FIFO", true, 4 * day, true, 14 * day, 22*day + 12*time.Hour},
		{"standard, dead-letter queue not known", false, 4 * day, true, 0, 8*day + 12*time.Hour},
		{"FIFO, dead-letter queue not known", true, 4 * day, true, 0, 8*day + 12*time.Hour},
	} {
		if got := LongestReturn(tt.fifo, tt.queue, tt.hasDLQ, tt.dead); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestParseRedrivePolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, target string
		most         int
		bad          bool
	}{
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":7}`, target: "a", most: 7},
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":"7"}`, target: "a", most: 7},
		{text: `{"deadLetterTargetArn":"a"}`, target: "a"},
		{text: `{"maxReceiveCount":-1}`},
		{text: `{"maxReceiveCount":1.5}`},
		{text: `{"deadLetterTargetArn":"a","maxReceiveCount":"many"}`, bad: true},
		{text: `{`, bad: true},
		{text: ``, bad: true},
	} {
		target, most, err := ParseRedrivePolicy(tt.text)
		if target != tt.target || most != tt.most || (err != nil) != tt.bad {
			t.Errorf("%s: got %q, %d, %v; want %+v", tt.text, target, most, err, tt)
		}
	}
}

func TestCrashCosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		most, received, behind int
		moved, want            bool
	}{
		{5, 4, 4, false, true}, {5, 3, 4, false, false}, {5, 4, 3, false, false}, {5, 5, 5, true, false}, {5, 6, 0, false, false},
		{3, 2, 2, false, true}, {2, 1, 1, false, false}, {2, 2, 1, false, true}, {2, 2, 0, false, false},
		{1, 1, 1, false, false}, {1, 2, 0, false, false}, {0, 3, 3, false, false},
	} {
		if got := CrashCosts(tt.most, tt.received, tt.behind, tt.moved); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
