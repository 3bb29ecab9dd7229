package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/oci"
)

// signatures wants each bundle of a catalog with a signature policy to be what was signed as that policy wants: from
// the bytes of its image, which the indexer keeps, the hub finds out again what is in it and who has signed it. Nothing
// that the indexer says is believed. The catalogs are the one that the plan names, and those that the subscriptions of
// the package name, so that naming another one gets nobody past a policy; nor does naming one that there is not.
func (j judgement) signatures(ctx context.Context) (refusal, error) {
	subs, err := j.subscriptions(ctx)
	if err != nil {
		return refusal{}, err
	}
	there, err := j.catalogs(ctx)
	if err != nil {
		return refusal{}, err
	}
	for _, b := range j.bundles {
		for _, subject := range j.catalogsOf(b, subs, there) {
			c := there[subject]
			if c.policy == "" {
				continue
			}
			why, err := j.content.signed(ctx, j.tx, j.scope.Tenant, digest.Digest(b.Content), c)
			if err != nil {
				return refusal{}, err
			}
			if why != "" {
				return refusal{events.SignatureNotVerified, fmt.Sprintf(
					"%s is of catalog %s, which has a signature policy: %s", b.CSV, c.subject, why)}, nil
			}
		}
		if _, is := there[j.named(b)]; !is && demanding(there) {
			return refusal{events.SignatureNotVerified, fmt.Sprintf(
				"%s is said to be of catalog %s, which there is not; other catalogs have signature policies", b.CSV,
				b.Catalog)}, nil
		}
	}
	return refusal{}, nil
}

// demanding reports whether one of the catalogs has a policy.
func demanding(there map[string]signer) bool {
	for _, c := range there {
		if c.policy != "" {
			return true
		}
	}
	return false
}

// named is the subject of the catalog that the plan names for a bundle.
func (j judgement) named(b events.PlannedBundle) string {
	if strings.Contains(b.Catalog, "/") {
		return j.scope.Cluster + "/" + b.Catalog
	}
	return b.Catalog
}

// catalogsOf are the subjects of the catalogs that a bundle is to be of: of a name, the catalog of the namespace that
// goes with it, else the hub's (R-CAT-85).
func (j judgement) catalogsOf(
	b events.PlannedBundle, subs map[string]subscription, there map[string]signer,
) []string {
	out := []string{j.named(b)}
	for _, s := range subs {
		if s.Package != b.Package {
			continue
		}
		own := j.scope.Cluster + "/" + s.CatalogNamespace + "/" + s.Catalog
		if _, is := there[own]; is {
			out = append(out, own)
		} else {
			out = append(out, s.Catalog)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// signer is a catalog; policy is the digest of its signature policy, "" for none.
type signer struct{ subject, spec, policy string }

// catalogs are those that may be named in the cluster, by subject.
func (j judgement) catalogs(ctx context.Context) (map[string]signer, error) {
	rows, err := j.tx.Query(ctx, `select subject, spec, signatures from installer.catalogs where tenant = $1
		and (subject not like '%/%' or starts_with(subject, $2 || '/'))`, j.scope.Tenant, j.scope.Cluster)
	if err != nil {
		return nil, err
	}
	out := map[string]signer{}
	var s signer
	_, err = pgx.ForEachRow(rows, []any{&s.subject, &s.spec, &s.policy}, func() error {
		out[s.subject] = s
		return nil
	})
	return out, err
}

const (
	// maxEvidence bounds how many images are looked at for one content: as many catalogs may offer it.
	maxEvidence = 16
	// maxEvidenceSize bounds what is read of one: what the indexer keeps, with the table of its pieces, which has some
	// 100 bytes for each of a few hundred at most.
	maxEvidenceSize = oci.MaxBundleEvidence + 1<<20
)

// signed says why it is not known that a key of a catalog's policy has signed a content; "" where it is.
func (c *contents) signed(ctx context.Context, tx pgx.Tx, tenant string, d digest.Digest, by signer) (
	why string, err error,
) {
	key := string(d) + " " + by.policy
	c.mu.Lock()
	known := c.verified[key]
	c.mu.Unlock()
	if known {
		return "", nil
	}
	policy, why, err := c.policyOf(ctx, tx, tenant, by)
	if why != "" || err != nil {
		return why, err
	}
	// One after the other: all together may have hundreds of MB, and whoever fills the table may write any number.
	rows, err := tx.Query(ctx, `select evidence from catalog_api.signed_images where tenant = $1 and content = $2
		and octet_length(evidence) <= $5 order by catalog <> $3, catalog, image limit $4`, tenant, string(d), by.subject,
		maxEvidence, maxEvidenceSize)
	if err != nil {
		return "", pg.Err(err)
	}
	defer rows.Close()
	why = "what it was fetched as is not kept, so that no signature can be checked (manifests in the catalog image " +
		"itself are not: publish bundle images)"
	for rows.Next() {
		var raw []byte
		if err := rows.Scan(&raw); err != nil {
			return "", pg.Err(err)
		}
		is, err := contentOf(ctx, raw, policy)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errs.Is(err, errs.Internal): // the hub's own trouble, such as a full disk
			return "", err
		case err != nil:
			why = err.Error()
		case is != d:
			why = fmt.Sprintf("the image that was signed holds content %s, the plan names %s", is.Short(), d.Short())
		default:
			c.remember(key)
			return "", nil
		}
	}
	return why, pg.Err(rows.Err())
}

// remember notes what was verified.
func (c *contents) remember(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verified) >= knownLimit {
		clear(c.verified)
	}
	c.verified[key] = true
}

// policyOf reads the policy of a catalog from its settings, and takes none but the one that the gateway's event names.
func (c *contents) policyOf(ctx context.Context, tx pgx.Tx, tenant string, by signer) (
	p source.SignaturePolicy, why string, err error,
) {
	body, err := readBody(ctx, tx, c.bodies, tenant, by.spec)
	if err != nil {
		return p, "", err
	}
	if body == nil {
		return p, "the settings of the catalog were erased", nil
	}
	settings, err := source.Decode(body)
	if err != nil {
		return p, "the settings of the catalog cannot be read", nil //nolint:nilerr // said in words
	}
	is, err := settings.Signatures.Digest()
	if err != nil {
		return p, "", errs.Wrap(errs.Internal, err, "digest of a signature policy")
	}
	if settings.Signatures == nil || string(is) != by.policy {
		return p, "the settings of the catalog hold another policy than its last change", nil
	}
	return *settings.Signatures, "", nil
}

// contentOf is the digest of the bundle in an image that a key of the policy has signed.
func contentOf(ctx context.Context, raw []byte, policy source.SignaturePolicy) (d digest.Digest, err error) {
	e, err := oci.ReadEvidence(raw)
	if err != nil {
		return "", err
	}
	tree, err := e.Bundle(ctx, policy, "")
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := tree.Close(); err == nil {
			err = cerr
		}
	}()
	b, findings := load.ReadBundle(tree.FS(), tree.Labels, "")
	return b.Content.Digest, findings.Err()
}
