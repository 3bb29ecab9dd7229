package ask

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Installer asks the installer, and through it the executor of a cluster.
type Installer struct{ Bus Asker }

// CheckPlan says what stands in the way of an install plan in its cluster now. One that has ended is errs.Conflict; a
// cluster that cannot be asked is errs.Unavailable.
func (i Installer) CheckPlan(ctx context.Context, who model.Caller, p model.InstallPlan) (model.PlanCheck, error) {
	if p.EndedAt != nil {
		return model.PlanCheck{}, errs.New(errs.Conflict, "install plan %s is %s: nothing can stand in its way any more", p.Name, p.Phase).At("id", "R-IP-43")
	}
	var out protocol.PlanCheck
	err := i.Bus.Ask(ctx, protocol.AskInstallerCheck, protocol.LivePlanQuestion{Tenant: who.Tenant, Plan: p.ID}, &out)
	if errs.Is(err, errs.Unavailable) {
		return model.PlanCheck{}, errs.New(errs.Unavailable, "cluster %q cannot be asked about install plan %s at the moment: %v", p.Cluster, p.Name, err)
	}
	return model.CheckOf(out), err
}
