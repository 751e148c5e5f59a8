package s3payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The format of AWS's extended clients. The legacy names are those of their first versions, which an option of the later
// ones keeps.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-managing-large-messages.html
const (
	pointerClass       = "software.amazon.payloadoffloading.PayloadS3Pointer"
	legacyPointerClass = "com.amazon.sqs.javamessaging.MessageS3Pointer"

	sizeAttribute       = "ExtendedPayloadSize"
	legacySizeAttribute = "SQSLargePayloadSize"

	// maxKey is the limit of S3 for a key, in bytes. S3 may cut the connection of a request with a much longer one.
	// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
	maxKey = 1024
)

// errPointer says that a message names an object of S3 in an unreadable way. Its body isn't a pointer although the message has
// a pointer's attribute, or is a pointer without a bucket or key, or with a key of more than 1,024 bytes.
var errPointer = errors.New("s3payload: the message has no readable pointer")

// pointer is the second element of a body such as ["software.amazon.payloadoffloading.PayloadS3Pointer",{...}].
type pointer struct {
	Bucket string `json:"s3BucketName"`
	Key    string `json:"s3Key"`
}

func (p pointer) String() string { return fmt.Sprintf("s3://%.256q/%.1024q", p.Bucket, p.Key) }

// body returns the body that names the object.
func (p pointer) body() string {
	b, _ := json.Marshal([]any{pointerClass, p}) // strings never fail
	return string(b)
}

// namesPointer reports whether a body claims to be a pointer. It does not parse bodies that are none.
func namesPointer(body string) bool {
	const space = " \t\r\n"
	list, ok := strings.CutPrefix(strings.TrimLeft(body, space), "[")
	list = strings.TrimLeft(list, space)
	return ok && (strings.HasPrefix(list, `"`+pointerClass+`"`) || strings.HasPrefix(list, `"`+legacyPointerClass+`"`))
}

// parsePointer reads a body that names a pointer. Its error has no text of the body.
func parsePointer(body string) (p pointer, err error) {
	var list []json.RawMessage
	err = json.Unmarshal([]byte(body), &list)
	if err == nil && len(list) == 2 {
		err = json.Unmarshal(list[1], &p)
	}
	if err != nil || p.Bucket == "" || p.Key == "" {
		return pointer{}, fmt.Errorf("%w: the body is not a list of a class and an object with s3BucketName and s3Key", errPointer)
	}
	if len(p.Key) > maxKey {
		return pointer{}, fmt.Errorf("%w: s3Key has %d bytes, S3's limit is %d", errPointer, len(p.Key), maxKey)
	}
	return p, nil
}
