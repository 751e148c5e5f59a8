package memdynamodb_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, c := start(t)
		ctx := t.Context()
		now := time.Now()
		at := func(d time.Duration) ddbtypes.AttributeValue { return num(fmt.Sprint(now.Add(d).Unix())) }
		for id, v := range map[string]ddbtypes.AttributeValue{
			"past": at(-time.Second), "now": at(0), "future": at(time.Hour), "text": str("1"),
			"old": at(-5*365*24*time.Hour + time.Hour), "ancient": at(-5*365*24*time.Hour - time.Hour),
		} {
			putItem(t, c, "orders", item{"id": str(id), "expiration": v})
		}
		putItem(t, c, "orders", item{"id": str("none")})
		if n := srv.SweepTTL(); n != 0 {
			t.Errorf("%d items deleted without TTL", n)
		}
		set := func(enabled bool) error {
			_, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: orders, TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: aws.String("expiration"), Enabled: &enabled}})
			return err
		}
		if err := set(true); err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, "twice", set(true), "ValidationException: TimeToLive is already enabled")
		d, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: orders})
		if err != nil || d.TimeToLiveDescription.TimeToLiveStatus != "ENABLED" || aws.ToString(d.TimeToLiveDescription.AttributeName) != "expiration" {
			t.Errorf("%+v, %v", d, err)
		}
		if get(t, c, "past") == nil {
			t.Error("an expired item vanished without a sweep")
		}
		if n := srv.SweepTTL(); n != 2 || get(t, c, "past") != nil || get(t, c, "old") != nil {
			t.Errorf("%d items deleted, want past and old", n)
		}
		time.Sleep(2 * time.Hour)
		if n := srv.SweepTTL(); n != 2 || len(srv.Items("orders")) != 3 {
			t.Errorf("%d items deleted after two hours, want now and future; left %s", n, srv.Items("orders"))
		}
	})
}
