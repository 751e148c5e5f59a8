package memdynamodb

import (
	"time"

	"github.com/sqsonce/sqsonce/localstack/internal/awsjson"
)

// recovery is the setting of point-in-time recovery. The server keeps and describes it, without backups.
type recovery struct {
	since time.Time // it was enabled; zero: it is disabled
	days  int
}

const (
	maxRecoveryDays = 35 // the default too
	recoveryLag     = 5 * time.Minute
)

type updateBackupsInput struct {
	TableName                        string
	PointInTimeRecoverySpecification *struct {
		PointInTimeRecoveryEnabled *bool
		RecoveryPeriodInDays       *int
	}
}

func (s *Server) updateContinuousBackups(_ *call, in *updateBackupsInput) (any, error) {
	spec := in.PointInTimeRecoverySpecification
	switch {
	case spec == nil:
		return nil, required("pointInTimeRecoverySpecification")
	case spec.PointInTimeRecoveryEnabled == nil:
		return nil, required("pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled")
	}
	enabled, days := *spec.PointInTimeRecoveryEnabled, maxRecoveryDays
	if spec.RecoveryPeriodInDays != nil {
		const member = "pointInTimeRecoverySpecification.recoveryPeriodInDays"
		switch days = *spec.RecoveryPeriodInDays; {
		case days < 1:
			return nil, constraint(days, member, "Member must have value greater than or equal to 1")
		case days > maxRecoveryDays:
			return nil, constraint(days, member, "Member must have value less than or equal to 35")
		case !enabled:
			return nil, validation("Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.")
		}
	}
	s.lock()
	defer s.mu.Unlock()
	t, err := s.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	switch now := s.now(); {
	case !enabled:
		t.recovery = recovery{}
	case t.recovery.since.IsZero():
		t.recovery = recovery{now, days}
	case spec.RecoveryPeriodInDays != nil:
		t.recovery.days = days
	}
	return t.recovery.describe(s.now()), nil
}

func (s *Server) describeContinuousBackups(_ *call, in *tableInput) (any, error) {
	s.lock()
	defer s.mu.Unlock()
	t, err := s.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	return t.recovery.describe(s.now()), nil
}

// backedUp is table with the error that the operations of backups have.
func (s *Server) backedUp(name string) (*table, error) {
	t, err := s.table(name)
	if e, ok := err.(*awsjson.Error); ok && e.Code == "ResourceNotFoundException" {
		return nil, awsjson.Invalid("TableNotFoundException", "Table not found: "+name)
	}
	return t, err
}

func (r *recovery) describe(now time.Time) any {
	point := map[string]any{"PointInTimeRecoveryStatus": "DISABLED"}
	if !r.since.IsZero() {
		earliest, latest := now.AddDate(0, 0, -r.days), now.Add(-recoveryLag)
		if earliest.Before(r.since) {
			earliest = r.since
		}
		if latest.Before(earliest) {
			latest = earliest
		}
		point = map[string]any{
			"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": r.days,
			"EarliestRestorableDateTime": seconds(earliest), "LatestRestorableDateTime": seconds(latest),
		}
	}
	return map[string]any{"ContinuousBackupsDescription": map[string]any{"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": point}}
}
