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
		days = *spec.RecoveryPeriodInDays
		if err := validRange(&days, "pointInTimeRecoverySpecification.recoveryPeriodInDays", 1, maxRecoveryDays); err != nil {
			return nil, err
		}
		if !enabled {
			return nil, validation("Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.")
		}
	}
	t, err := s.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	switch now := t.at; {
	case !enabled:
		t.recovery = recovery{}
	case t.recovery.since.IsZero():
		t.recovery = recovery{now, days}
	case spec.RecoveryPeriodInDays != nil:
		t.recovery.days = days
	}
	return t.recovery.describe(t.at), nil
}

func (s *Server) describeContinuousBackups(_ *call, in *tableInput) (any, error) {
	t, err := s.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	return t.recovery.describe(t.at), nil
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
