package catalogs

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/catalogsecret"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// spec checks the source and stores its settings.
func (s *Service) spec(
	ctx context.Context, u *unit.Work, name catalog.Name, in model.ChangeCatalog, how model.Validate, previous string,
) (catalog.Spec, error) {
	settings := in.Source.Settings(in.Display)
	spec := catalog.Spec{
		SourceType: string(in.Source.Type), Priority: in.Priority, Disabled: in.Disabled,
		Templated: source.Templated(settings),
	}
	spec.Visibility = catalog.VisibilityOf(name, in.Visibility, s.GlobalNamespaces)
	if err := checkSource(in.Source.Type, settings); err != nil {
		return spec, err
	}
	signatures, err := settings.Signatures.Digest()
	if err != nil {
		return spec, errs.Wrap(errs.Internal, err, "digest of the signature policy of catalog %s", name.Subject())
	}
	spec.Signatures = string(signatures)
	if settings.Path != "" { // two ways to write one path are no change
		settings.Path = path.Clean(settings.Path)
	}
	if err := s.checkSecrets(ctx, u, in.Source, how); err != nil {
		return spec, err
	}
	body, err := json.Marshal(settings)
	if err != nil {
		return spec, errs.Wrap(errs.Internal, err, "encode the source of catalog %s", name.Subject())
	}
	spec.Settings, err = bodies.Commit(ctx, u, store.KindCatalogSource, body, u.Announced().BodyOr(previous))
	return spec, err
}

// checkSource applies the rules that indexer and CLI use, too.
func checkSource(t source.Type, settings source.Settings) error {
	var v rule.Violations
	for _, x := range source.Check(t, settings) {
		field := x.Field
		if !strings.HasPrefix(field, "/display") {
			field = "/source" + field
		}
		v.Addf(field, x.Rule, "%s", x.Message)
	}
	return v.Err()
}

// checkSecrets compares the credentials that a source names with those that are known:
//
//  1. A known one of a kind that this type of source cannot use is refused.
//  2. An unknown one is accepted, and shown as a condition: secrets may come after the catalog.
//  3. With validate=strict an unknown one is refused with the choices; with lenient nothing is.
func (s *Service) checkSecrets(ctx context.Context, u *unit.Work, in model.CatalogSource, how model.Validate) error {
	if len(in.Secrets) == 0 || how == model.ValidateLenient {
		return nil
	}
	known, err := s.Secrets.Kinds(ctx, u.Tx, u.Caller.Tenant)
	if err != nil {
		return err
	}
	for _, name := range in.Secrets {
		kind, ok := known[name]
		switch {
		case ok && !catalogsecret.Fits(in.Type, kind):
			return errs.New(errs.Unprocessable,
				"catalog secret %q is of kind %s, which a source of type %s has no use for", name, kind, in.Type).
				At("/source/secrets", "secret-kind")
		case !ok && how == model.ValidateStrict:
			return errs.New(errs.Unprocessable,
				"no catalog secret %q is known, and validate=strict was asked for; known are: %s", name,
				rule.Choices(slices.Sorted(maps.Keys(known)))).
				At("/source/secrets", "secret-known")
		}
	}
	return nil
}
