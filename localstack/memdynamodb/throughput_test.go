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

// Four decreases a day, then one an hour after the last one that was made. A refused one counts for nothing, and a new UTC day begins
// again. Bubbles begin on January 1, 2000 at midnight.
func TestDecreasesOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t)
		units := int64(100)
		set := func(n int64, mode ddbtypes.BillingMode) error {
			in := &dynamodb.UpdateTableInput{TableName: orders, BillingMode: mode, ProvisionedThroughput: &ddbtypes.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}}
			_, err := c.UpdateTable(t.Context(), in)
			return err
		}
		decrease := func() {
			t.Helper()
			units--
			if err := set(units, ""); err != nil {
				t.Fatal(err)
			}
		}
		refused := func(today int, last, next string) {
			t.Helper()
			text := fmt.Sprintf("LimitExceededException: Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the first 4 decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 seconds. Number of decreases today: %d. Last decrease at %s Coordinated Universal Time. Next decrease can be made at %s Coordinated Universal Time",
				today, last, next)
			wantRefusal(t, "a decrease", set(units-1, ""), text)
		}
		if err := set(units, "PROVISIONED"); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			decrease()
		}
		refused(4, "Saturday, January 1, 2000 at 12:00:00 AM", "Saturday, January 1, 2000 at 1:00:00 AM")
		time.Sleep(time.Hour - time.Second)
		refused(4, "Saturday, January 1, 2000 at 12:00:00 AM", "Saturday, January 1, 2000 at 1:00:00 AM")
		time.Sleep(time.Second)
		decrease()
		refused(5, "Saturday, January 1, 2000 at 1:00:00 AM", "Saturday, January 1, 2000 at 2:00:00 AM")
		for today := 6; today <= 27; today++ { // the most of a day
			time.Sleep(time.Hour)
			decrease()
			if today == 27 {
				refused(today, "Saturday, January 1, 2000 at 11:00:00 PM", "Sunday, January 2, 2000 at 12:00:00 AM")
			}
		}
		time.Sleep(time.Hour)
		for range 4 {
			decrease()
		}
		refused(4, "Sunday, January 2, 2000 at 12:00:00 AM", "Sunday, January 2, 2000 at 1:00:00 AM")
		time.Sleep(23*time.Hour + 30*time.Minute)
		decrease() // at half past eleven
		refused(5, "Sunday, January 2, 2000 at 11:30:00 PM", "Monday, January 3, 2000 at 12:00:00 AM")
		if err := set(units+1, ""); err != nil {
			t.Errorf("an increase: %v", err)
		}
	})
}

// An index that is added later counts too.
func TestAHundredProjectedNames(t *testing.T) {
	t.Parallel()
	_, c := start(t)
	add := func(index string, names int) error {
		p := &ddbtypes.Projection{ProjectionType: "INCLUDE"}
		for i := range names {
			p.NonKeyAttributes = append(p.NonKeyAttributes, fmt.Sprint(i))
		}
		_, err := c.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName: orders, AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
			GlobalSecondaryIndexUpdates: []ddbtypes.GlobalSecondaryIndexUpdate{{Create: &ddbtypes.CreateGlobalSecondaryIndexAction{
				IndexName: &index, KeySchema: []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: "HASH"}}, Projection: p,
			}}},
		})
		return err
	}
	for i := range 5 {
		if err := add(fmt.Sprint("index", i), 20); err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, "one more", add("more", 1), "ValidationException: One or more parameter values were invalid: NonKeyAttributes of all indexes have 101 names, must be at most 100")
}
