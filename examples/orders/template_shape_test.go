package orders

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// The parts of a SAM template that the checks read. Every field has its tag: yaml.v3 would look for lower-case keys, and
// find nothing.
type template struct {
	Parameters map[string]struct {
		Default any `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function properties `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]struct {
		Type                string     `yaml:"Type"`
		DeletionPolicy      string     `yaml:"DeletionPolicy"`
		UpdateReplacePolicy string     `yaml:"UpdateReplacePolicy"`
		Properties          properties `yaml:"Properties"`
	} `yaml:"Resources"`
}

type properties struct {
	// functions
	Runtime       string                     `yaml:"Runtime"`
	Handler       string                     `yaml:"Handler"`
	Architectures []string                   `yaml:"Architectures"`
	Timeout       int                        `yaml:"Timeout"`
	Role          string                     `yaml:"Role"`
	Events        map[string]eventProperties `yaml:"Events"`
	// queues
	FifoQueue              bool `yaml:"FifoQueue"`
	VisibilityTimeout      int  `yaml:"VisibilityTimeout"`
	MessageRetentionPeriod int  `yaml:"MessageRetentionPeriod"`
	RedrivePolicy          struct {
		Target          string `yaml:"deadLetterTargetArn"`
		MaxReceiveCount any    `yaml:"maxReceiveCount"`
	} `yaml:"RedrivePolicy"`
	// tables
	KeySchema []struct {
		AttributeName string `yaml:"AttributeName"`
		KeyType       string `yaml:"KeyType"`
	} `yaml:"KeySchema"`
	TTL struct {
		AttributeName string `yaml:"AttributeName"`
		Enabled       bool   `yaml:"Enabled"`
	} `yaml:"TimeToLiveSpecification"`
	// alarms
	MetricName string `yaml:"MetricName"`
	Dimensions []struct {
		Value string `yaml:"Value"`
	} `yaml:"Dimensions"`
	// roles
	Policies []struct {
		PolicyDocument struct {
			Statement []struct {
				Action list `yaml:"Action"`
			} `yaml:"Statement"`
		} `yaml:"PolicyDocument"`
	} `yaml:"Policies"`
}

type eventProperties struct {
	Type       string `yaml:"Type"`
	Properties event  `yaml:"Properties"`
}

type event struct {
	Queue                   string         `yaml:"Queue"`
	Enabled                 string         `yaml:"Enabled"`
	BatchSize               int            `yaml:"BatchSize"`
	Window                  int            `yaml:"MaximumBatchingWindowInSeconds"`
	FunctionResponseTypes   []string       `yaml:"FunctionResponseTypes"`
	ScalingConfig           map[string]any `yaml:"ScalingConfig"`
	ProvisionedPollerConfig any            `yaml:"ProvisionedPollerConfig"`
	DestinationConfig       any            `yaml:"DestinationConfig"`
}

// list is a text or a list of texts, as in the Action of a policy.
type list []string

func (l *list) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = list{n.Value}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// names returns the resources of a type, sorted.
func (t *template) names(kind string) []string {
	var names []string
	for name, r := range t.Resources {
		if r.Type == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
