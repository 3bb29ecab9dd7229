package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/previewapi"
)

// Touched finds the scopes that hypotheses can touch, as the folds of the same events would: by name, by the read
// sets of the last resolutions, by the selector of a policy. They are in order of cluster and namespace, each once;
// a question that names a namespace has that one alone.
func (hs *Hypotheses) Touched(ctx context.Context, q previewapi.Question) ([]previewapi.Scope, error) {
	if q.Single() {
		return []previewapi.Scope{{Cluster: q.Cluster, Namespace: q.Namespace}}, nil
	}
	var all []previewapi.Scope
	err := hs.pool.TenantTx(ctx, q.Tenant, func(tx pgx.Tx) error {
		for _, h := range q.Hypotheses {
			found, err := hs.touchedBy(ctx, tx, q.Tenant, h)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(x previewapi.Scope) bool {
		return q.Cluster != "" && x.Cluster != q.Cluster || q.Namespace != "" && x.Namespace != q.Namespace
	})
	slices.SortFunc(all, previewapi.Scope.Compare)
	return slices.Compact(all), nil
}

func (hs *Hypotheses) touchedBy(ctx context.Context, tx pgx.Tx, tenant string, h previewapi.Hypothesis) (
	[]previewapi.Scope, error,
) {
	p, err := h.Payload()
	if err != nil {
		return nil, err
	}
	switch p := p.(type) {
	case events.CatalogRevisionPublished:
		what, err := hs.touchedByRevision(ctx, tx, tenant, h.Subject, p.Revision)
		if err != nil {
			return nil, err
		}
		return hs.askers(ctx, tx, tenant, h.Subject, what)
	case events.CatalogChanged, events.CatalogRemoved:
		return hs.askers(ctx, tx, tenant, h.Subject, touchedReads{named: true, visible: true, healths: true})
	case events.ApprovalPolicySet:
		return hs.chosen(ctx, tx, tenant, h.Subject, p.Spec.Selector)
	case events.ApprovalPolicyMetadataChanged:
		return nil, nil // nothing is decided by it
	case events.ApprovalPolicyDeleted:
		return hs.chosen(ctx, tx, tenant, h.Subject)
	}
	cluster, namespace, _, err := splitSubject(h.Subject)
	if err != nil {
		return nil, errs.New(errs.Unprocessable, "%s of %s cannot be previewed", h.Type, h.Subject)
	}
	return []previewapi.Scope{{Cluster: cluster, Namespace: namespace}}, nil
}

// touchedByRevision is what a stored revision, put in service in a catalog, changes for its clusters: packages that
// differ from one of the revisions in service. Any catalog may have published it.
func (hs *Hypotheses) touchedByRevision(ctx context.Context, tx pgx.Tx, tenant, subject, revision string) (
	what touchedReads, err error,
) {
	next, err := packagesIn(ctx, tx, tenant, revision)
	if err != nil {
		return what, err
	}
	if len(next) == 0 {
		return what, errs.New(errs.NotFound, "catalog revision %s is not stored, or is empty", revision)
	}
	rows, err := tx.Query(ctx, `select revision, failed from resolver.catalog_revisions
		where tenant = $1 and subject = $2`, tenant, subject)
	if err != nil {
		return what, fmt.Errorf("read the revisions of catalog %s: %w", subject, pg.Err(err))
	}
	served, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Revision string
		Failed   bool
	}])
	if err != nil {
		return what, fmt.Errorf("read the revisions of catalog %s: %w", subject, pg.Err(err))
	}
	what.named, what.visible, what.health = len(served) == 0, len(served) == 0, len(served) == 0
	var digests []string
	for _, r := range served {
		before, err := packagesIn(ctx, tx, tenant, r.Revision)
		if err != nil {
			return what, err
		}
		if r.Revision == "" || len(before) == 0 { // the first, or it left service long ago: what it had is not known
			what.named, what.visible, what.health, what.anyhow = true, true, true, true
			continue
		}
		what.health = what.health || r.Failed
		digests = append(digests, what.differ(before, next)...)
	}
	slices.Sort(digests)
	what.apis, err = hs.apis.Of(ctx, tx, tenant, slices.Compact(digests))
	return what, err
}

// differ adds the packages in which two revisions differ, and returns the documents that are new.
func (a *touchedReads) differ(before, next map[string]string) (digests []string) {
	for name, d := range next {
		if before[name] != d {
			a.packages = append(a.packages, storable(name))
			a.names = a.names || before[name] == ""
			digests = append(digests, d)
		}
	}
	for name := range before {
		if next[name] == "" {
			a.packages, a.names = append(a.packages, storable(name)), true
		}
	}
	return digests
}

func packagesIn(ctx context.Context, tx pgx.Tx, tenant, revision string) (map[string]string, error) {
	rows, err := tx.Query(ctx, `select package, digest from catalog_api.revision_packages
		where tenant = $1 and revision = $2`, tenant, revision)
	if err != nil {
		return nil, fmt.Errorf("read catalog revision %s: %w", revision, pg.Err(err))
	}
	out := map[string]string{}
	var name, d string
	if _, err := pgx.ForEachRow(rows, []any{&name, &d}, func() error { out[name] = d; return nil }); err != nil {
		return nil, fmt.Errorf("read catalog revision %s: %w", revision, pg.Err(err))
	}
	return out, nil
}

// askers are the scopes whose read set is touched, where the catalog can be seen at all; who named it is
// touched in all of its cluster (R-CAT-85).
func (hs *Hypotheses) askers(ctx context.Context, tx pgx.Tx, tenant, subject string, what touchedReads) (
	[]previewapi.Scope, error,
) {
	var cluster, namespace string
	err := tx.QueryRow(ctx, `select visibility_cluster, visibility_namespace from resolver.catalogs
		where tenant = $1 and subject = $2`, tenant, subject).
		Scan(&cluster, &namespace)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.NotFound, "there is no catalog %s", subject)
	}
	if err != nil {
		return nil, fmt.Errorf("read catalog %s: %w", subject, pg.Err(err))
	}
	arms := what.arms()
	if len(arms) == 0 {
		return nil, nil
	}
	for i, arm := range arms {
		arms[i] = `select r.cluster, r.namespace, r.kind from resolver.reads r where r.tenant = @tenant and ` + arm
	}
	rows, err := tx.Query(ctx, `select distinct a.cluster, a.namespace from (`+strings.Join(arms, ` union all `)+`) a
		where @cluster in ('', a.cluster) and (@namespace in ('', a.namespace) or a.kind = 'catalog')`, pgx.NamedArgs{
		"tenant": tenant, "subject": subject, "name": catalogKey(subject).Name, "packages": what.packages,
		"apis": what.apis, "cluster": cluster, "namespace": namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("find the namespaces that ask catalog %s: %w", subject, pg.Err(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[previewapi.Scope])
	if err != nil {
		return nil, fmt.Errorf("find the namespaces that ask catalog %s: %w", subject, pg.Err(err))
	}
	return list, nil
}

// chosen are the scopes that an approval policy chooses as it is, or by further selectors.
func (hs *Hypotheses) chosen(ctx context.Context, tx pgx.Tx, tenant, subject string,
	selectors ...events.PolicySelector,
) ([]previewapi.Scope, error) {
	before, err := readPolicy(ctx, tx, tenant, strings.TrimPrefix(subject, policySubject))
	if err != nil {
		return nil, err
	}
	if before != nil {
		selectors = append(selectors, before.Spec.Selector)
	}
	var all []previewapi.Scope
	for _, sel := range selectors {
		sql, args, err := chosenBy(sel, "")
		if err != nil {
			return nil, err
		}
		args["tenant"] = tenant
		rows, err := tx.Query(ctx, sql, args)
		if err != nil {
			return nil, fmt.Errorf("find the namespaces of %s: %w", subject, pg.Err(err))
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[previewapi.Scope])
		if err != nil {
			return nil, fmt.Errorf("find the namespaces of %s: %w", subject, pg.Err(err))
		}
		all = append(all, list...)
	}
	return all, nil
}
