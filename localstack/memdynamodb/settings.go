package memdynamodb

import (
	"slices"
	"strings"
)

// Settings of a table that are kept and described, and change nothing.

// tableClass is a table's class. It is nil for a table that was created without a class and did not get one later.
type tableClass struct {
	TableClass         string
	LastUpdateDateTime float64 `json:",omitempty"`
}

func validClass(class string) error {
	if !slices.Contains([]string{"", "STANDARD", "STANDARD_INFREQUENT_ACCESS"}, class) {
		return validation("Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, STANDARD_INFREQUENT_ACCESS].")
	}
	return nil
}

// encryptionInput is the SSESpecification of a request.
type encryptionInput struct {
	Enabled                 bool
	SSEType, KMSMasterKeyId string
}

// encryption describes a key of KMS. It is nil for a table with the default encryption.
type encryption struct{ Status, SSEType, KMSMasterKeyArn string }

func (in *encryptionInput) valid() error {
	switch {
	case in == nil:
		return nil
	case !slices.Contains([]string{"", "AES256", "KMS"}, in.SSEType):
		return constraint(in.SSEType, "sSESpecification.sSEType", "Member must satisfy enum value set: [AES256, KMS]")
	case !in.Enabled && in.SSEType != "":
		return validation(invalidParameters + "SSEType can not be specified if Enabled is false")
	case !in.Enabled && in.KMSMasterKeyId != "":
		return validation(invalidParameters + "KMSMasterKeyId can not be specified if Enabled is false")
	case in.SSEType == "AES256":
		return validation(invalidParameters + "SSEType AES256 is not supported")
	case in.KMSMasterKeyId != "" && in.SSEType == "":
		return validation(invalidParameters + "SSEType KMS is required if KMSMasterKeyId is specified")
	}
	return nil
}

const awsKey = "key/00000000-0000-4000-8000-000000000000" // AWS's own key of the account

// described is the description of a valid specification. The key is in the table's account and Region. There is no KMS: a key is taken as it is named.
func (in *encryptionInput) described(table string) *encryption {
	if in == nil || !in.Enabled {
		return nil
	}
	keyARN := strings.TrimSuffix(strings.Replace(tableARN.FindString(table), ":dynamodb:", ":kms:", 1), "table/")
	key := in.KMSMasterKeyId
	switch {
	case key == "":
		key = keyARN + awsKey
	case strings.HasPrefix(key, "alias/"):
		key = keyARN + key
	case !strings.HasPrefix(key, "arn:"):
		key = keyARN + "key/" + key
	}
	return &encryption{"ENABLED", "KMS", key}
}

// encrypt changes the encryption to a valid specification. It refuses the one that the table has: AWS does.
func (t *tableState) encrypt(in *encryptionInput) error {
	next := in.described(t.TableArn)
	switch {
	case next == nil && t.SSEDescription == nil:
		return validation(invalidParameters + "Table is already encrypted by default")
	case next != nil && t.SSEDescription != nil && *next == *t.SSEDescription:
		return validation(invalidParameters + "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you want to change Master Key")
	}
	t.SSEDescription = next
	return nil
}
