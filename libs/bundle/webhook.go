package bundle

import (
	"encoding/json"
	"fmt"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Types of a webhook (R-CSV-42).
const (
	ValidatingWebhook = "ValidatingAdmissionWebhook"
	MutatingWebhook   = "MutatingAdmissionWebhook"
	ConversionWebhook = "ConversionWebhook"
)

// DefaultServingPort is the port of a webhook or API service that names none.
const DefaultServingPort = 443

// WebhookDescription is one entry of webhookdefinitions (R-CSV-42). Rules, ObjectSelector and TargetPort
// are kept as they were written, like the spec of a Deployment.
type WebhookDescription struct {
	Type                    string          `json:"type"`
	GenerateName            string          `json:"generateName"`
	DeploymentName          string          `json:"deploymentName,omitempty"`
	ContainerPort           int32           `json:"containerPort,omitempty"` // of the Service; 0 is DefaultServingPort
	TargetPort              json.RawMessage `json:"targetPort,omitempty"`    // number or name; absent is ContainerPort
	WebhookPath             string          `json:"webhookPath,omitempty"`
	Rules                   json.RawMessage `json:"rules,omitempty"`
	ObjectSelector          json.RawMessage `json:"objectSelector,omitempty"`
	FailurePolicy           string          `json:"failurePolicy,omitempty"`
	MatchPolicy             string          `json:"matchPolicy,omitempty"`
	SideEffects             string          `json:"sideEffects,omitempty"`
	TimeoutSeconds          *int32          `json:"timeoutSeconds,omitempty"`
	ReinvocationPolicy      string          `json:"reinvocationPolicy,omitempty"`
	AdmissionReviewVersions []string        `json:"admissionReviewVersions,omitempty"`
	ConversionCRDs          []string        `json:"conversionCRDs,omitempty"`
}

// Port is the port of the Service that the API server calls.
func (w WebhookDescription) Port() int32 { return servingPort(w.ContainerPort) }

// Port is the port of the Service that the API server calls.
func (a APIDescription) Port() int32 { return servingPort(a.ContainerPort) }

func servingPort(p int32) int32 {
	if p <= 0 {
		return DefaultServingPort
	}
	return p
}

// WebhookDescriptions reads webhookdefinitions in order. An entry of another form is errs.Invalid.
func (c CSV) WebhookDescriptions() ([]WebhookDescription, error) {
	out := make([]WebhookDescription, len(c.Spec.Webhooks))
	for i, raw := range c.Spec.Webhooks {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, errs.New(errs.Invalid, "ClusterServiceVersion %s: webhook %d: %v", c.Name, i+1, err).
				At(fmt.Sprintf("/spec/webhookdefinitions/%d", i), "R-CSV-42")
		}
	}
	return out, nil
}
