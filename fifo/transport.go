package fifo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sqsonce/sqsonce/internal/sdkhttp"
)

// singleAttempt turns off the SDK's retries, which do not know the window, and its check of checksums, which drops the
// results of all ten entries when one does not match.
func singleAttempt(o *sqs.Options) {
	o.Retryer = aws.NopRetryer{}
	o.DisableMessageChecksumValidation = true
	o.HTTPClient = sdkhttp.Whole(o.HTTPClient)
}

// sendWatch is the knowledge about the request of one attempt: how far it got, and by whose clock it was refused.
type sendWatch struct {
	installed atomic.Bool // false: the client is not the SDK's, or a wrapper drops the option functions
	given     atomic.Bool // to the HTTP client; false: the SDK failed before, for example because there are no credentials
	traced    atomic.Bool // the HTTP client says what it does, as net/http's does
	wrote     atomic.Bool // headers
	skewed    atomic.Bool // the response has another time than the one that was signed
}

func (w *sendWatch) install(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		w.installed.Store(true)
		// The last middleware of the deserialize step: next is the HTTP client.
		return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("fifo.sent", w.send), middleware.After)
	})
}

func (w *sendWatch) send(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	w.given.Store(true)
	out, metadata, err := next.HandleDeserialize(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      func(string) { w.traced.Store(true) },
		WroteHeaders: func() { w.wrote.Store(true) },
	}), in)
	w.skewed.Store(isSkewed(in.Request, out.RawResponse))
	return out, metadata, err
}

// neverSent reports that SQS cannot have got the request. net/http calls WroteHeaders before it sends the body, also when it
// repeats a request by itself; of a request that has failed it writes nothing more over HTTP/1, and no body over HTTP/2. Where
// nothing reports, nothing is known: the text of an error may be that of another request.
func (w *sendWatch) neverSent() bool {
	return w.installed.Load() && (!w.given.Load() || w.traced.Load() && !w.wrote.Load())
}

// mostSkew is the difference of clocks above which the SDK takes a refused signature for the clock's fault. SQS allows five
// minutes.
const mostSkew = 4 * time.Minute

// isSkewed compares the time that was signed with the Date of the response. The SDK learns its clock's offset from every Date,
// without a retryer too, so that the next request is signed with SQS's time.
func isSkewed(request, response any) bool {
	req, ok := request.(*smithyhttp.Request)
	resp, responded := response.(*smithyhttp.Response)
	if !ok || !responded || resp.Response == nil {
		return false
	}
	signed, err := time.Parse("20060102T150405Z", req.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	date, err := http.ParseTime(resp.Header.Get("Date"))
	return err == nil && date.Sub(signed).Abs() > mostSkew
}

// isCertificate reports that the endpoint has no certificate that the client trusts. Only a person can change that.
func isCertificate(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, hostname := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	return verification || authority || hostname || invalid
}
