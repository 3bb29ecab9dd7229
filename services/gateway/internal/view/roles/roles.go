package roles

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Reader answers queries about roles and bindings, and keeps the policy of each tenant in memory while its version is
// the one that it was read at.
type Reader struct {
	Pool *pg.Pool
	// Model is the read model of roles; nil is one that is always there.
	Model interface{ Serves() error }

	mu      sync.Mutex
	tenants map[string]*kept
}

type kept struct {
	mu     sync.Mutex // of one tenant: whoever finds another version reads it, the others wait
	seen   events.Position
	policy *access.Policy
}

// Policy is who may do what in a tenant, as it was at a version or later. Whoever authenticates reads the version
// together with what they read anyway (store.Tokens); a policy of that version costs no query.
func (r *Reader) Policy(ctx context.Context, tenant string, version events.Position) (*access.Policy, error) {
	r.mu.Lock()
	if r.tenants == nil {
		r.tenants = map[string]*kept{}
	}
	k := r.tenants[tenant]
	if k == nil {
		k = &kept{}
		r.tenants[tenant] = k
	}
	r.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.policy != nil && k.seen == version {
		return k.policy, nil
	}
	p, err := r.read(ctx, tenant)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "read who may do what")
	}
	k.policy, k.seen = p, version
	return p, nil
}

// Serves is nil once the roles and bindings of this version can be read. A part of them would leave out what was taken
// away since.
func (r *Reader) Serves() error {
	if r.Model == nil {
		return nil
	}
	return r.Model.Serves()
}

// Current is the policy as it is now.
func (r *Reader) Current(ctx context.Context, tenant string) (*access.Policy, error) {
	var version events.Position
	err := r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select epoch, position from access_versions where tenant = $1`, tenant).
			Scan(&version.Epoch, &version.N)
	})
	if err != nil && !errs.Is(err, errs.NotFound) {
		return nil, errs.Wrap(errs.Unavailable, err, "read who may do what")
	}
	return r.Policy(ctx, tenant, version)
}

// read reads a policy. Each statement sees what is committed when it begins, and the version was read before: what
// changes meanwhile has a version of its own, so that the next request reads again.
func (r *Reader) read(ctx context.Context, tenant string) (*access.Policy, error) {
	s := access.State{Roles: map[string]events.RoleDefined{}, Bindings: map[string]events.RoleBindingDefined{}}
	clusters := map[string]map[string]string{}
	err := r.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		if err := each(ctx, tx, `select name, rules from roles where tenant = $1`, tenant,
			func(row pgx.CollectableRow) error {
				var d events.RoleDefined
				err := row.Scan(&d.Name, &d.Rules)
				s.Roles[d.Name] = d
				return err
			}); err != nil {
			return err
		}
		if err := each(ctx, tx, `select name, role, subjects, scope from role_bindings where tenant = $1`, tenant,
			func(row pgx.CollectableRow) error {
				var b events.RoleBindingDefined
				err := row.Scan(&b.Name, &b.Role, &b.Subjects, &b.Scope)
				s.Bindings[b.Name] = b
				return err
			}); err != nil {
			return err
		}
		return each(ctx, tx, `select name, labels from access_clusters where tenant = $1`, tenant,
			func(row pgx.CollectableRow) error {
				var name string
				var labels map[string]string
				err := row.Scan(&name, &labels)
				clusters[name] = labels
				return err
			})
	})
	return access.NewPolicy(s, clusters), err
}

func each(ctx context.Context, tx pgx.Tx, sql, tenant string, take func(pgx.CollectableRow) error) error {
	rows, err := tx.Query(ctx, sql, tenant)
	if err != nil {
		return pg.Err(err)
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, take(row) })
	return pg.Err(err)
}

// Roles lists roles by name, the built-in ones among them.
func (r *Reader) Roles(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.AccessRole, next []string, err error) {
	if len(page.After) > 1 {
		return nil, nil, readmodel.ForeignCursor()
	}
	var all []model.AccessRole
	for _, b := range access.BuiltIn() {
		all = append(all, builtIn(b))
	}
	defined, err := r.defined(ctx, who, readmodel.Tenant("tenant", who.Tenant), access.MaxRoles*2)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, defined...)
	slices.SortFunc(all, func(a, b model.AccessRole) int { return strings.Compare(a.Name, b.Name) })
	for _, role := range all {
		if len(page.After) == 1 && role.Name <= page.After[0] {
			continue
		}
		if len(items) == page.Limit {
			return items, []string{items[len(items)-1].Name}, nil
		}
		items = append(items, role)
	}
	return items, nil, nil
}

// builtIn is a role that comes with Chandler, as the API shows it.
func builtIn(r access.Role) model.AccessRole {
	return model.AccessRole{
		Name: r.Name, BuiltIn: true, Description: r.Doc, Spec: model.RoleSpec{Rules: model.RulesOf(r.Rules)},
	}
}

type roleRow struct {
	Name             string
	Rules            []events.AccessRule
	Created, Updated time.Time
	Stream           string
	Version          int64
}

func (r *Reader) defined(
	ctx context.Context, who model.Caller, w readmodel.Where, limit int,
) (items []model.AccessRole, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, _, err := readmodel.Page[roleRow](ctx, tx, `select name, rules, created, updated, stream, version
			from roles`, w, "name", limit)
		for _, x := range rows {
			items = append(items, model.AccessRole{
				Name: x.Name, Spec: model.RoleSpec{Rules: model.RulesOf(x.Rules)}, CreatedAt: &x.Created,
				UpdatedAt: &x.Updated, Stream: x.Stream, Version: x.Version,
			})
		}
		return err
	})
	return items, err
}

// Role returns one role.
func (r *Reader) Role(ctx context.Context, who model.Caller, name string) (model.AccessRole, error) {
	for _, b := range access.BuiltIn() {
		if b.Name == name {
			return builtIn(b), nil
		}
	}
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Add("name = ?", name)
	items, err := r.defined(ctx, who, w, 1)
	if err == nil && len(items) == 0 {
		err = errs.New(errs.NotFound, "no role %q exists", name)
	}
	if err != nil {
		return model.AccessRole{}, err
	}
	return items[0], nil
}

type bindingRow struct {
	Name, Role       string
	Subjects         []events.AccessSubject
	Scope            events.AccessScope
	Created, Updated time.Time
	Stream           string
	Version          int64
}

func (r *Reader) bindings(
	ctx context.Context, who model.Caller, w readmodel.Where, limit int,
) (items []model.RoleBinding, more bool, err error) {
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var rows []bindingRow
		rows, more, err = readmodel.Page[bindingRow](ctx, tx,
			`select name, role, subjects, scope, created, updated, stream, version from role_bindings`, w, "name", limit)
		for _, x := range rows {
			items = append(items, model.RoleBinding{
				Name: x.Name, Spec: model.BindingSpecOf(x.Role, x.Subjects, x.Scope), CreatedAt: x.Created,
				UpdatedAt: x.Updated, Stream: x.Stream, Version: x.Version,
			})
		}
		return err
	})
	return items, more, err
}

// Bindings lists bindings by name.
func (r *Reader) Bindings(
	ctx context.Context, who model.Caller, page model.Page,
) (items []model.RoleBinding, next []string, err error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	if err := w.After(page.After, "name"); err != nil {
		return nil, nil, err
	}
	items, more, err := r.bindings(ctx, who, w, page.Limit)
	if more {
		next = []string{items[len(items)-1].Name}
	}
	return items, next, err
}

// Binding returns one binding.
func (r *Reader) Binding(ctx context.Context, who model.Caller, name string) (model.RoleBinding, error) {
	w := readmodel.Tenant("tenant", who.Tenant)
	w.Add("name = ?", name)
	items, _, err := r.bindings(ctx, who, w, 1)
	if err == nil && len(items) == 0 {
		err = errs.New(errs.NotFound, "no role binding %q exists", name)
	}
	if err != nil {
		return model.RoleBinding{}, err
	}
	return items[0], nil
}
