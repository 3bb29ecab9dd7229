package planreview

import (
	"bytes"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// Rule is the rule that what is shown of a plan is what its digest binds.
const Rule = "plan-content"

// Source is what a bundle is rendered from.
type Source struct {
	CSV       string
	Namespace string
	Rendering string // rules by which it is rendered
	Content   bundle.Content
	// Config is the configuration of the subscription; empty without one.
	Config json.RawMessage
	// Confidential hides what only those may read who may change the subscription: values of environment variables,
	// and the data of Secrets.
	Confidential bool
}

// Object is one object of a bundle as it will be applied, before the overlays of the cluster.
type Object struct {
	render.Object // as it is applied

	Digest digest.Digest
	// Shown is the canonical JSON of the object, with what is confidential hidden.
	Shown  json.RawMessage
	Hidden bool // Shown is not what is applied: something is hidden
}

// Render renders a bundle.
func Render(s Source) ([]Object, error) {
	objects, err := render.Known.Render(s.Rendering, render.Input{
		Content: s.Content, Namespace: s.Namespace, Config: s.Config,
	})
	if err != nil {
		return nil, err
	}
	shown := objects
	if s.Confidential && len(s.Config) > 0 {
		shown, err = render.Known.Render(s.Rendering, render.Input{
			Content: s.Content, Namespace: s.Namespace, Config: subscription.HideValues(s.Config),
		})
		if err != nil || len(shown) != len(objects) {
			// An error could say what is hidden.
			return nil, errs.New(errs.Unprocessable, "bundle %s cannot be shown without the values of its configuration",
				s.CSV).At("", Rule)
		}
	}
	out := make([]Object, len(objects))
	for i, o := range objects {
		if out[i], err = shownAs(o, shown[i], s.Confidential); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func shownAs(o, shown render.Object, confidential bool) (Object, error) {
	if confidential && o.GVK.Group == "" && o.GVK.Kind == "Secret" {
		shown = shown.Clone()
		hideData(shown.Body)
	}
	out := Object{Object: o}
	applied, err := digest.Canonical(o.Body)
	if err == nil {
		out.Shown, err = digest.Canonical(shown.Body)
	}
	if err == nil {
		out.Digest, err = o.Digest()
	}
	out.Hidden = !bytes.Equal(applied, out.Shown)
	return out, errs.Wrap(errs.Internal, err, "write %s", o)
}

// hideData hides the values of a Secret; their names stay.
func hideData(body map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, ok := body[field].(map[string]any)
		if !ok {
			continue
		}
		for key := range values {
			values[key] = subscription.HiddenValue
		}
	}
}

// Steps are the steps of a plan that belong to one of its bundles, in order, with their numbers from 1.
func Steps(doc installplan.Document, csv string) (steps []installplan.Step, numbers []int) {
	for i, s := range doc.Steps {
		if s.Resolving == csv {
			steps, numbers = append(steps, s), append(numbers, i+1)
		}
	}
	return steps, numbers
}

// Matches reports whether objects are, one by one, those that the steps of a plan name by their digests.
func Matches(steps []installplan.Step, objects []Object) bool {
	if len(steps) != len(objects) {
		return false
	}
	for i, s := range steps {
		o := objects[i]
		if s.Digest != o.Digest || s.Kind != o.GVK.Kind || s.Group != o.GVK.Group || s.Version != o.GVK.Version ||
			s.Name != o.Name || s.Namespace != o.Namespace {
			return false
		}
	}
	return true
}
