package mappings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/awserr"
)

const (
	ahead        = 7 * time.Minute // from the read of a schedule, before a switch off, until it fires
	signedWithin = time.Minute     // of that read
	patience     = 2 * time.Minute // for a mapping that Lambda changes
	pollEvery    = 2 * time.Second
)

// SwitchOff switches a mapping off whose schedule is the one with this ID, and waits until it is off.
func (s *Switch) SwitchOff(ctx context.Context, m Mapping, id string) error {
	off := &lambda.UpdateEventSourceMappingInput{UUID: &m.UUID, Enabled: aws.Bool(false)} // all else stays, such as provisioned pollers
	err := s.patiently(ctx, func() error {
		found, at, err := s.schedule(ctx, m)
		switch {
		case err != nil:
			return err
		case found == nil || found.ID != id:
			return ErrChanged
		case !found.Armed || found.At.Sub(at) < ahead:
			return fmt.Errorf("mapping %s stays on: its schedule fires at %s, which is too near", m.UUID, stamp(found.At))
		}
		_, err = s.Lambda.UpdateEventSourceMapping(ctx, off, signedBefore(at.Add(signedWithin)))
		return allowing(err, "lambda:UpdateEventSourceMapping", m.ARN())
	})
	if err != nil {
		return err
	}
	return s.wait(ctx, m, Mapping.Off)
}

// SwitchOn switches a mapping on whose schedule is the one that was seen, and waits until it is on.
func (s *Switch) SwitchOn(ctx context.Context, m Mapping) error {
	if _, err := s.same(ctx, m); err != nil {
		return err
	}
	err := s.patiently(ctx, func() error {
		_, err := s.Lambda.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: &m.UUID, Enabled: aws.Bool(true)})
		return allowing(err, "lambda:UpdateEventSourceMapping", m.ARN())
	})
	if err != nil {
		return err
	}
	return s.wait(ctx, m, Mapping.On)
}

// patiently repeats a change that Lambda does not make now, for example because another one is under way, or whose outcome is unknown.
func (s *Switch) patiently(ctx context.Context, change func() error) error {
	for end := time.Now().Add(patience); ; {
		err := change()
		_, conflict := errors.AsType[*lambdatypes.ResourceConflictException](err)
		_, inUse := errors.AsType[*lambdatypes.ResourceInUseException](err)
		if !conflict && !inUse && !awserr.Unsent(err) && !awserr.Busy(err) || time.Now().After(end) {
			return err
		}
		if stopped := sleep(ctx, pollEvery); stopped != nil {
			return errors.Join(err, stopped)
		}
	}
}

// wait waits for a state of the mapping.
func (s *Switch) wait(ctx context.Context, m Mapping, is func(Mapping) bool) error {
	for end := time.Now().Add(patience); ; {
		c, err := s.mapping(ctx, m)
		if err != nil {
			return err
		}
		m.State = aws.ToString(c.State)
		if is(m) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("mapping %s is still %s after %s: look again", m.UUID, m.State, patience)
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func (s *Switch) mapping(ctx context.Context, m Mapping) (*lambda.GetEventSourceMappingOutput, error) {
	out, err := s.Lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &m.UUID})
	return out, allowing(err, "lambda:GetEventSourceMapping", m.ARN())
}

// now is AWS's clock.
func (s *Switch) now(ctx context.Context, m Mapping) (time.Time, error) {
	out, err := s.mapping(ctx, m)
	if err != nil {
		return time.Time{}, err
	}
	return serverTime(out.ResultMetadata)
}

// signedBefore has a call sent only with a signature of before limit. AWS refuses it 5 min after its signature, so that a process that
// was suspended sends no late request.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
func signedBefore(limit time.Time) func(*lambda.Options) {
	return func(o *lambda.Options) {
		o.HTTPClient = fence{o.HTTPClient, limit}
	}
}

type fence struct {
	client lambda.HTTPClient
	limit  time.Time
}

var errLate = errors.New("the request was signed too late after the read of its schedule")

func (f fence) Do(r *http.Request) (*http.Response, error) {
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || signed.After(f.limit) {
		return nil, errLate
	}
	return f.client.Do(r)
}
