package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/sqsonce/sqsonce/cmd/sqsonce/internal/mappings"
	"github.com/sqsonce/sqsonce/internal/must"
	"github.com/sqsonce/sqsonce/internal/testserver"
)

// The functions of the template are paused and resumed by its role. Moto has Lambda and EventBridge Scheduler as others understand
// them, and fires no schedule.
func TestPauseOfTheTemplate(t *testing.T) {
	t.Parallel()
	c, deployments := deployTemplate(t, "paused")
	roles := must.Get(c.IAM.ListRoles(t.Context(), &iam.ListRolesInput{}))(t).Roles
	roleOf := func(logical string) string {
		i := slices.IndexFunc(roles, func(r iamtypes.Role) bool { return strings.HasPrefix(*r.RoleName, "paused-"+logical+"-") })
		if i < 0 {
			t.Fatalf("no role %s", logical)
		}
		return *roles[i].Arn
	}
	url := testserver.Moto.Shared(t).URL
	sw := &mappings.Switch{Lambda: c.Lambda, Scheduler: scheduler.New(scheduler.Options{
		Region: "us-east-1", BaseEndpoint: &url, Credentials: c.Lambda.Options().Credentials,
	})}
	for _, d := range deployments {
		look := func(want string) mappings.Mapping {
			t.Helper()
			found := must.Get(sw.Look(t.Context(), d.Function))(t)
			if len(found) != 1 {
				t.Fatalf("%s has %d mappings, want 1", d.Function, len(found))
			}
			if is, ok := found[0].Is(); !ok || !strings.HasPrefix(is, want) {
				t.Errorf("mapping of %s is %q (%t), want %q", d.Function, is, ok, want)
			}
			return found[0]
		}
		m := look("open")
		must.Do(t, mappings.CheckRole(t.Context(), c.IAM, roleOf("SwitchBackRole"), m))
		if err := mappings.CheckRole(t.Context(), c.IAM, roleOf("OutboxRelayRole"), m); !errors.Is(err, mappings.ErrRole) {
			t.Errorf("another role: got %v, want ErrRole", err)
		}
		pause := mappings.Schedule{ID: "1", By: "ann", Reason: "bank is down", Role: roleOf("SwitchBackRole")}
		must.Do(t, sw.Write(t.Context(), m, pause, time.Hour))
		if err := sw.Write(t.Context(), m, pause, time.Hour); !errors.Is(err, mappings.ErrChanged) {
			t.Errorf("a second schedule: got %v, want ErrChanged", err)
		}
		must.Do(t, sw.SwitchOff(t.Context(), m, pause.ID))
		m = look("paused until")
		must.Do(t, sw.SwitchOn(t.Context(), m))
		pause.ID, pause.Ended = "2", true
		must.Do(t, sw.Write(t.Context(), m, pause, 0))
		look("open, as ann asked for")
	}
}
