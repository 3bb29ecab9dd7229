package catalogview

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
)

// question is asked of a catalog revision, which never changes.
type question struct {
	tenant, revision string
	kind             asked
	name             string
}

type asked uint8

const (
	askPackage   asked = iota // the digest of a package's document
	askProviders              // the packages of which some bundle provides an API, as resolve.APIName writes it
	askNames                  // all packages
)

// answer to a question; lists are sorted, and nobody changes them. A miss is an answer.
type answer struct {
	digest   string
	packages []string
}

// Of what a question and its answer take in memory beside their texts.
const (
	questionWeight = 200
	nameWeight     = 16
)

func answerWeight(q question, a answer) int {
	n := questionWeight + len(q.name) + len(a.digest)
	for _, name := range a.packages {
		n += nameWeight + len(name)
	}
	return n
}

func (v *Views) answer(ctx context.Context, q question) (answer, error) {
	if strings.Contains(q.name, "\x00") || !utf8.ValidString(q.name) {
		if q.kind == askPackage {
			return answer{}, nil // no database takes it as a name, so that no package has it
		}
		q.name = storable(q.name)
	}
	return v.answers.get(ctx, q, func(ctx context.Context) (answer, error) {
		a, err := v.find(ctx, q)
		return a, errs.Wrap(errs.KindOf(err), err, "read catalog revision %s", q.revision)
	})
}

// storable is a text as PostgreSQL takes it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// find reads the answer to a question. An empty one only counts for a revision that is stored: who folds the
// log late meets revisions of long ago, and the one that took their place is on its way.
func (v *Views) find(ctx context.Context, q question) (a answer, err error) {
	switch q.kind {
	case askPackage:
		err = v.pool.QueryRow(ctx, `select coalesce((select digest from catalog_api.revision_packages
			where tenant = $1 and revision = $2 and package = $3), '')`, q.tenant, q.revision, q.name).Scan(&a.digest)
	case askProviders:
		a.packages, err = v.providers(ctx, q)
	case askNames:
		err = v.pool.QueryRow(ctx, `select array(select package from catalog_api.revision_packages
			where tenant = $1 and revision = $2)`, q.tenant, q.revision).Scan(&a.packages)
	}
	if err != nil || a.digest != "" || len(a.packages) > 0 {
		slices.Sort(a.packages)
		return a, pg.Err(err)
	}
	var there bool
	err = v.pool.QueryRow(ctx, `select exists (select from catalog_api.revisions where tenant = $1 and revision = $2)
		or exists (select from catalog_api.revision_packages where tenant = $1 and revision = $2)`, q.tenant, q.revision).Scan(&there)
	if err == nil && !there {
		return a, errs.New(errs.Conflict, "catalog revision %s is not stored any more; another one has taken its place",
			q.revision)
	}
	return a, pg.Err(err)
}

// providers asks for the packages with an API. Documents that nobody has met yet are read first.
func (v *Views) providers(ctx context.Context, q question) (packages []string, err error) {
	for {
		var unmet []string
		err := v.pool.QueryRow(ctx, `select
			array(select p.package from catalog_api.revision_packages p
			join resolver.package_apis a on a.tenant = p.tenant and a.digest = p.digest
				where p.tenant = $1 and p.revision = $2 and $3 = any (a.apis)),
			array(select p.digest from catalog_api.revision_packages p where p.tenant = $1 and p.revision = $2
				and not exists (select from resolver.package_apis a where a.tenant = p.tenant and a.digest = p.digest))`,
			q.tenant, q.revision, q.name).Scan(&packages, &unmet)
		if err != nil || len(unmet) == 0 {
			return packages, err
		}
		for _, d := range unmet {
			if _, err := v.offers(ctx, v.pool, q.tenant, d); err != nil {
				return nil, err
			}
		}
	}
}
