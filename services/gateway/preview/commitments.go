package preview

import (
	"cmp"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Commitments are what one write commits to; "" where it does not.
type Commitments struct {
	Body        string // the configuration of a subscription, or the settings of a catalog
	Annotations string
}

// BodyOr is the commitment of the body, or the one that is there.
func (c Commitments) BodyOr(previous string) string { return cmp.Or(c.Body, previous) }

// AnnotationsOr is the commitment of the annotations, or the one that is there.
func (c Commitments) AnnotationsOr(previous string) string { return cmp.Or(c.Annotations, previous) }

// AllCommitments are those of all writes, "" among them.
func AllCommitments(list []Write) ([]string, error) {
	by, err := CommitmentsOf(list)
	out := make([]string, 0, 2*len(by))
	for _, c := range by {
		out = append(out, c.Body, c.Annotations)
	}
	return out, err
}

// CommitmentsOf are the commitments among what is supposed, by write: one subject may be written more than once.
func CommitmentsOf(list []Write) ([]Commitments, error) {
	out := make([]Commitments, len(list))
	for i, w := range list {
		for _, h := range w.Hypotheses {
			p, err := h.Payload()
			if err != nil {
				return nil, err
			}
			if read, commits := committing[h.Type]; commits {
				read(&out[i], p)
			}
		}
	}
	return out, nil
}

// committing are the events of previews that commit to something, each with what reads its commitment. This is the one
// list of them.
var committing = func() table {
	t := table{}
	on(t, func(c *Commitments, p events.SubscriptionCreated) { c.Body = p.Spec.Config })
	on(t, func(c *Commitments, p events.SubscriptionChanged) { c.Body = p.Spec.Config })
	on(t, func(c *Commitments, p events.CatalogChanged) { c.Body = p.Spec })
	on(t, func(c *Commitments, p events.SubscriptionMetadataChanged) { c.Annotations = p.Metadata.Annotations })
	on(t, func(c *Commitments, p events.OperatorGroupMetadataChanged) { c.Annotations = p.Metadata.Annotations })
	on(t, func(c *Commitments, p events.CatalogMetadataChanged) { c.Annotations = p.Metadata.Annotations })
	on(t, func(c *Commitments, p events.ApprovalPolicyMetadataChanged) { c.Annotations = p.Metadata.Annotations })
	return t
}()

type table map[events.Type]func(*Commitments, events.Payload)

func on[P events.Payload](t table, read func(*Commitments, P)) {
	var zero P
	t[zero.EventType()] = func(c *Commitments, p events.Payload) {
		read(c, p.(P)) //nolint:forcetypeassert // the table is looked up by the payload's type
	}
}
