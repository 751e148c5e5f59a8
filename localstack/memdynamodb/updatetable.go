package memdynamodb

// updateTableInput is a change of one setting. The server has no changes of indexes: a table is created with them.
type updateTableInput struct {
	TableName                 string
	BillingMode               string
	ProvisionedThroughput     *throughput
	DeletionProtectionEnabled *bool
	StreamSpecification       *streamInput
}

// updateTable makes the change at once: only the response says UPDATING.
func (s *Server) updateTable(_ *call, in *updateTableInput) (any, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	s.lock()
	defer s.mu.Unlock()
	t, err := s.namedTable(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.StreamSpecification != nil {
		if err := t.checkStream(in.StreamSpecification); err != nil {
			return nil, err
		}
	}
	if err := t.bill(in, s.now()); err != nil {
		return nil, err
	}
	s.setStream(t, in.StreamSpecification)
	status := "UPDATING"
	if in.DeletionProtectionEnabled != nil { // alone, as validate has seen
		t.DeletionProtectionEnabled = *in.DeletionProtectionEnabled
		status = "ACTIVE"
	}
	return map[string]any{"TableDescription": t.describe(status)}, nil
}

// validate checks what needs no look at the table.
func (in *updateTableInput) validate() error {
	if err := validTable(in.TableName); err != nil {
		return err
	}
	if err := validBilling(in.BillingMode); err != nil {
		return err
	}
	if in.ProvisionedThroughput != nil {
		if err := in.ProvisionedThroughput.valid("provisionedThroughput"); err != nil {
			return err
		}
	}
	if err := in.StreamSpecification.valid(); err != nil {
		return err
	}
	billing := in.BillingMode != "" || in.ProvisionedThroughput != nil
	switch others := billing || in.StreamSpecification != nil; {
	case !others && in.DeletionProtectionEnabled == nil:
		return validation("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required")
	case others && in.DeletionProtectionEnabled != nil:
		return validation(invalidParameters + "DeletionProtection modification must be the only operation in the request")
	}
	return nil
}
