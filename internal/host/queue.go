package host

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// queueName is what CreateQueue allows: 80 characters, the suffix .fifo included.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
var queueName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)$`)

// QueueURLProblem returns what is wrong with a queue's URL, or "". It accepts the URLs of emulators: any host, and any
// path that ends in a queue's name.
func QueueURLProblem(s string) string {
	if s == "" {
		return "is empty"
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Sprintf("is %.256q, must be a URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders", s)
	}
	if !queueName.MatchString(u.Path[strings.LastIndexByte(u.Path, '/')+1:]) {
		return fmt.Sprintf("is %.256q, must end in a queue's name: 1 to 80 of A-Z a-z 0-9 _ -, with .fifo for a FIFO queue", s)
	}
	return ""
}

// IsFIFO goes by the end of a queue's name, URL or ARN, which is .fifo exactly for FIFO queues. A group ID does not tell:
// messages of standard queues have one too, for fair queues.
func IsFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

// QueueName returns the name in a queue's URL.
func QueueName(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }

// QueueARN is arn:partition:sqs:region:account:name.
type QueueARN struct{ Partition, Region, Account, Name string }

// ParseQueueARN returns the parts of a queue's ARN.
func ParseQueueARN(arn string) (QueueARN, error) {
	p := strings.Split(arn, ":")
	if len(p) != 6 || p[0] != "arn" || p[2] != "sqs" || p[3] == "" || p[4] == "" || p[5] == "" {
		return QueueARN{}, fmt.Errorf("%.256q is not a queue's ARN", arn)
	}
	return QueueARN{Partition: p[1], Region: p[3], Account: p[4], Name: p[5]}, nil
}

func (q QueueARN) String() string {
	return strings.Join([]string{"arn", q.Partition, "sqs", q.Region, q.Account, q.Name}, ":")
}

// URL has the form of https://docs.aws.amazon.com/general/latest/gr/sqs-service.html.
func (q QueueARN) URL() string {
	domain := "amazonaws.com"
	if q.Partition == "aws-cn" {
		domain += ".cn"
	}
	return "https://sqs." + q.Region + "." + domain + "/" + q.Account + "/" + q.Name
}

// ARNOfURL returns the ARN of the queue that a URL of AWS's form names, and false for any other URL.
func ARNOfURL(queueURL string) (QueueARN, bool) {
	u, err := url.Parse(queueURL)
	if err != nil {
		return QueueARN{}, false
	}
	host := strings.Split(u.Hostname(), ".") // sqs.REGION.amazonaws.com[.cn]
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(host) < 4 || host[0] != "sqs" || host[2] != "amazonaws" || len(path) != 2 {
		return QueueARN{}, false
	}
	q := QueueARN{Partition: "aws", Region: host[1], Account: path[0], Name: path[1]}
	switch {
	case strings.HasPrefix(q.Region, "cn-"):
		q.Partition = "aws-cn"
	case strings.HasPrefix(q.Region, "us-gov-"):
		q.Partition = "aws-us-gov"
	}
	return q, true
}
