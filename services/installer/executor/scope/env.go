package scope

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/configseal"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/provenance"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// Env is what all stages work with while the cluster is held.
type Env struct {
	Client *kube.Epoch
	Log    *slog.Logger
	Now    func() time.Time
	Points failure.Points
	// Pause is how soon what waits, or failed, and has no back-off of its own is tried again if no hint comes.
	Pause    time.Duration
	Contents Contents
	// Configs opens configurations. They stay sealed wherever they are kept, and are opened where they are used.
	Configs configseal.Key
	// Rendering are the rules by which bundles are rendered.
	Rendering *render.Versions
	Pace      *pace.Pace
	Watcher   *watch.Watch
	Trail     *watch.Trail
	Specs     *provenance.Specs
	Rendered  *RenderedStates
	Parts     *Parts
	// NoteOperator is called with each InstalledOperator that was read.
	NoteOperator func(o *unstructured.Unstructured, csv bundle.CSV)
	// Seen is the position of the record that was acted on in a namespace.
	Seen func(namespace string) kube.Seen
	// Note writes the position of a message down, before something begins because of it.
	Note func(ctx context.Context, wanted protocol.ScopePlans) error
	// Stop says why nothing may be changed in a namespace now, nil where it may.
	Stop func(namespace string) *failure.Failure
}

// Contents fetches bundles by their digest.
type Contents interface {
	Get(ctx context.Context, d digest.Digest) (bundle.Content, error)
}
