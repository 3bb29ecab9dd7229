package hub

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Labels and annotations of intents, which are told to clusters that show them and change nothing else there.

// foldMetadata keeps what is noted on an intent, and forgets it with the intent. noted reports an event that says
// nothing else.
func foldMetadata(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) (noted bool, err error) {
	var m events.Metadata
	switch p := e.Payload.(type) {
	case events.SubscriptionMetadataChanged:
		m, noted = p.Metadata, true
	case events.OperatorGroupMetadataChanged:
		m, noted = p.Metadata, true
	case events.CatalogMetadataChanged:
		m, noted = p.Metadata, true
	case events.SubscriptionDeleted, events.OperatorGroupDeleted, events.CatalogRemoved:
	default:
		return false, nil
	}
	if m.Equal(events.Metadata{}) {
		_, err = tx.Exec(ctx, `delete from installer.metadata where tenant = $1 and kind = $2 and subject = $3`,
			e.Tenant, e.StreamID.Kind, e.Envelope.Subject)
	} else {
		_, err = tx.Exec(ctx, `insert into installer.metadata (tenant, kind, subject, metadata) values ($1, $2, $3, $4)
			on conflict (tenant, kind, subject) do update set metadata = excluded.metadata`, e.Tenant, e.StreamID.Kind, e.Envelope.Subject, m)
	}
	return noted, err
}

// markMetadata marks where labels and annotations are shown, and nothing else: no operator depends on them.
func (f folder) markMetadata(ctx context.Context, tx pgx.Tx, e eventlog.Recorded) error {
	if e.StreamID.Kind == events.KindCatalog {
		return f.markFollowers(ctx, tx, e)
	}
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	return f.markMirrored(ctx, tx, e, s)
}

// fillMetadata tells labels and annotations of what is shown in the cluster.
func fillMetadata(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	at := m.Scope.Cluster + "/" + m.Scope.Namespace + "/"
	if err := readMetadata(ctx, tx, m.Scope.Tenant, events.KindOperatorGroup, at+m.OperatorGroup.Name,
		&m.OperatorGroup.Metadata); err != nil {
		return err
	}
	for i := range m.Subscriptions {
		s := &m.Subscriptions[i]
		if err := readMetadata(ctx, tx, m.Scope.Tenant, events.KindSubscription, at+s.Name, &s.Metadata); err != nil {
			return err
		}
		if s.Catalog == nil {
			continue
		}
		if err := readMetadata(ctx, tx, m.Scope.Tenant, events.KindCatalog, s.Catalog.Subject,
			&s.Catalog.Metadata); err != nil {
			return err
		}
	}
	return nil
}

// readMetadata reads what is noted on one intent. Annotations that were erased are none.
func readMetadata(ctx context.Context, tx pgx.Tx, tenant string, kind events.Kind, subject string,
	into *protocol.Metadata,
) error {
	rows, err := tx.Query(ctx, `select m.metadata, b.body from installer.metadata m
		left join gateway_api.bodies b on b.tenant = m.tenant and b.commitment = m.metadata ->> 'annotations'
		where m.tenant = $1 and m.kind = $2 and m.subject = $3`, tenant, kind, subject)
	if err != nil {
		return err
	}
	var m events.Metadata
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&m, &body}, func() error {
		into.Labels = m.Labels
		if body == nil {
			return nil
		}
		return errs.Wrap(errs.Internal, json.Unmarshal(body, &into.Annotations), "read the annotations of %s %s", kind,
			subject)
	})
	return err
}
