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
// path that ends in a queue's name without escapes.
func QueueURLProblem(s string) string {
	if s == "" {
		return "is empty"
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Sprintf("is %.256q, must be a URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders", WithoutSecrets(s))
	}
	if !queueName.MatchString(QueueName(u.EscapedPath())) { // not as the server would decode it: orders%2Efifo would be taken for a standard queue
		return fmt.Sprintf("is %.256q, must end in a queue's name: 1 to 80 of A-Z a-z 0-9 _ -, with .fifo for a FIFO queue", WithoutSecrets(s))
	}
	return ""
}

// WithoutSecrets returns a URL, or a text that should be one, without user name, password, query and fragment, for an error.
func WithoutSecrets(s string) string {
	if i := strings.IndexAny(s, "?#"); i >= 0 && !strings.Contains(s[i:], "@") {
		s = s[:i]
	} else if i >= 0 { // where a password ends is a guess
		return "xxxxx"
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		scheme, _, found := strings.Cut(s[:i], "://")
		if found {
			scheme += "://"
		} else {
			scheme = ""
		}
		return scheme + s[i+1:]
	}
	return s
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

// endpoints are the forms of SQS's host names: regional, FIPS, dual-stack, of a VPC endpoint, and legacy. The first group is the Region.
//
// https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-internetwork-traffic-privacy.html
var endpoints = []*regexp.Regexp{
	regexp.MustCompile(`^sqs(?:-fips)?\.([a-z]+(?:-[a-z]+)+-[0-9]+)\.(amazonaws\.com|amazonaws\.com\.cn|api\.aws|api\.amazonwebservices\.com\.cn)$`),
	regexp.MustCompile(`^vpce-[a-z0-9-]+\.sqs(?:-fips)?\.([a-z]+(?:-[a-z]+)+-[0-9]+)\.vpce\.(amazonaws\.com|amazonaws\.com\.cn)$`),
	regexp.MustCompile(`^([a-z]+(?:-[a-z]+)+-[0-9]+)\.queue\.(amazonaws\.com|amazonaws\.com\.cn)$`),
}

// legacyEndpoint has no Region in its name. It is that of us-east-1.
const legacyEndpoint = "queue.amazonaws.com"

var account = regexp.MustCompile(`^[0-9]{12}$`)

// ARNOfURL returns the ARN of the queue that a URL of AWS's form names, and false for any other URL.
func ARNOfURL(queueURL string) (QueueARN, bool) {
	u, err := url.Parse(queueURL)
	if err != nil {
		return QueueARN{}, false
	}
	q := QueueARN{}
	var named bool
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if q.Partition, q.Region, named = regionOfHost(u.Hostname()); !named || len(path) != 2 || !account.MatchString(path[0]) || !queueName.MatchString(path[1]) {
		return QueueARN{}, false
	}
	q.Account, q.Name = path[0], path[1]
	return q, true
}

// regionOfHost returns the Region of an endpoint's host name, and false for the host of another service.
func regionOfHost(host string) (partition, region string, ok bool) {
	if host == legacyEndpoint {
		return "aws", "us-east-1", true
	}
	for _, form := range endpoints {
		m := form.FindStringSubmatch(host)
		if m == nil {
			continue
		}
		china := strings.HasPrefix(m[1], "cn-")
		switch {
		case china != strings.HasSuffix(m[2], ".cn"):
			return "", "", false
		case china:
			return "aws-cn", m[1], true
		case strings.HasPrefix(m[1], "us-gov-"):
			return "aws-us-gov", m[1], true
		}
		return "aws", m[1], true
	}
	return "", "", false
}
