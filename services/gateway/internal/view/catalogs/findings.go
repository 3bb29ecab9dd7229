package catalogs

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Findings lists what was wrong with a catalog at the last poll, in the order in which it was found.
func (r *Reader) Findings(
	ctx context.Context, who model.Caller, name catalog.Name, f model.FindingFilter,
) (items []model.Finding, next []string, err error) {
	var raw json.RawMessage
	from := 0
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		document, err := findingsOf(ctx, tx, who.Tenant, name, f.Variant)
		if err != nil || document.digest == "" {
			return err
		}
		// A page of another poll would leave gaps: the list begins anew.
		if len(f.After) == 2 && f.After[0] == document.digest {
			if from, err = strconv.Atoi(f.After[1]); err != nil || from < 0 {
				return readmodel.ForeignCursor()
			}
		}
		next = []string{document.digest}
		raw, err = documentText(ctx, tx, who.Tenant, document)
		return err
	})
	var all []model.Finding
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, nil, err
	}
	items = []model.Finding{}
	for i := from; i < len(all); i++ {
		x := all[i]
		if f.Severity != "" && x.Severity != f.Severity || f.Package != "" && x.Package != f.Package {
			continue
		}
		if len(items) == f.Limit {
			return items, append(next, strconv.Itoa(i)), nil
		}
		items = append(items, x)
	}
	return items, nil, nil
}

// findingsDocument names a report of the indexer.
type findingsDocument struct{ stream, digest string }

func documentText(ctx context.Context, tx pgx.Tx, tenant string, d findingsDocument) (json.RawMessage, error) {
	return readmodel.Document(ctx, tx, `select findings::text from catalog_api.findings
		where tenant = $1 and document = $2 and catalog = $3`, tenant, d.digest, d.stream)
}

// findingsOf names the report of the last poll of a catalog: of the variant that is asked for, or of the highest.
func findingsOf(
	ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, variant string,
) (findingsDocument, error) {
	c, err := One(ctx, tx, tenant, name)
	if err != nil {
		return findingsDocument{}, err
	}
	found, err := statusOf(ctx, tx, tenant, []string{c.Stream})
	if err != nil {
		return findingsDocument{}, err
	}
	for _, s := range found[c.Stream] {
		if variant == "" || s.Variant == variant {
			return findingsDocument{c.Stream, s.document}, nil
		}
	}
	if variant != "" {
		return findingsDocument{}, errs.New(errs.NotFound, "catalog %q has no variant %q", name.Subject(), variant)
	}
	return findingsDocument{c.Stream, c.document}, nil
}
