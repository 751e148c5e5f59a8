package s3payload

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParsePointer(t *testing.T) {
	t.Parallel()
	want := pointer{Bucket: "payloads", Key: "a/b"}
	for name, body := range map[string]string{
		"Java":             `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"payloads","s3Key":"a/b"}]`,
		"Python":           `["software.amazon.payloadoffloading.PayloadS3Pointer", {"s3BucketName": "payloads", "s3Key": "a/b"}]`,
		"legacy":           `["com.amazon.sqs.javamessaging.MessageS3Pointer",{"s3BucketName":"payloads","s3Key":"a/b"}]`,
		"with white space": "\r\n\t [ \"software.amazon.payloadoffloading.PayloadS3Pointer\"\n, {\"s3Key\":\"a/b\",\"s3BucketName\":\"payloads\"} ] ",
		"with more fields": `["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"payloads","s3Key":"a/b","s3Version":{"id":1}}]`,
		"ours":             want.body(),
	} {
		if got, err := parsePointer(body); !namesPointer(body) || got != want || err != nil {
			t.Errorf("%s: got %v and error %v, want %v", name, got, err, want)
		}
	}
	const class = `"software.amazon.payloadoffloading.PayloadS3Pointer"`
	for name, body := range map[string]string{
		"cut":           `[` + class + `,{"s3BucketName":"payloads","s3Key":"secret`,
		"one element":   `[` + class + `]`,
		"three":         `[` + class + `,{"s3BucketName":"payloads","s3Key":"secret"},1]`,
		"two documents": `[` + class + `,{"s3BucketName":"payloads","s3Key":"secret"}]{}`,
		"null":          `[` + class + `,null]`,
		"a string":      `[` + class + `,"secret"]`,
		"no bucket":     `[` + class + `,{"s3Key":"secret"}]`,
		"no key":        `[` + class + `,{"s3BucketName":"secret"}]`,
		"empty key":     `[` + class + `,{"s3BucketName":"secret","s3Key":""}]`,
		"a number":      `[` + class + `,{"s3BucketName":"secret","s3Key":1}]`,
	} {
		if got, err := parsePointer(body); !namesPointer(body) || !errors.Is(err, errPointer) || got != (pointer{}) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v and error %v, want errPointer without text of the body", name, got, err)
		}
	}
	for name, body := range map[string]string{
		"empty": "", "an object": `{"s3BucketName":"payloads","s3Key":"a/b"}`, "another class": `["com.example.S3Pointer",{}]`,
		"a longer class": `["software.amazon.payloadoffloading.PayloadS3Pointer2",{}]`, "the class alone": class,
	} {
		if namesPointer(body) {
			t.Errorf("%s: taken for a pointer", name)
		}
	}
}

func FuzzPointer(f *testing.F) {
	f.Add(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"payloads","s3Key":"a/b"}]`)
	f.Add(`["com.amazon.sqs.javamessaging.MessageS3Pointer", {"s3BucketName": "é", "s3Key": "\u0000<&>"}]`)
	f.Add(`[ "software.amazon.payloadoffloading.PayloadS3Pointer",{"S3KEY":"a","s3bucketname":"b"},[]]`)
	f.Fuzz(func(t *testing.T, body string) {
		p, err := parsePointer(body)
		if err != nil {
			if !errors.Is(err, errPointer) || p != (pointer{}) {
				t.Fatalf("%q: got %v and error %v", body, p, err)
			}
			return
		}
		if p.Bucket == "" || p.Key == "" || !utf8.ValidString(p.Bucket) || !utf8.ValidString(p.Key) {
			t.Fatalf("%q: got %v, which names no object", body, p)
		}
		again, err := parsePointer(p.body())
		if err != nil || again != p || !namesPointer(p.body()) {
			t.Fatalf("%q: got %v, and %v with error %v from its own body", body, p, again, err)
		}
	})
}
