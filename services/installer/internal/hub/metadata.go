package hub

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Labels and annotations of intents are shown in clusters that mirror everything, and change nothing else there.

func (f folder) subscriptionMetadataChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.SubscriptionMetadataChanged,
) error {
	return f.metadataChanged(ctx, tx, e, p.Metadata)
}

func (f folder) groupMetadataChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.OperatorGroupMetadataChanged,
) error {
	return f.metadataChanged(ctx, tx, e, p.Metadata)
}

func (f folder) metadataChanged(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, m events.Metadata) error {
	s, err := parseSubject(e.Envelope.Subject)
	if err != nil {
		return err
	}
	if err := putMetadata(ctx, tx, e, m); err != nil {
		return err
	}
	return f.markMirrored(ctx, tx, e, s)
}

func (f folder) catalogMetadataChanged(
	ctx context.Context, tx pgx.Tx, e eventlog.Recorded, p events.CatalogMetadataChanged,
) error {
	if err := putMetadata(ctx, tx, e, p.Metadata); err != nil {
		return err
	}
	return f.markFollowers(ctx, tx, e)
}

func (f folder) catalogRemoved(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, _ events.CatalogRemoved) error {
	if err := putMetadata(ctx, tx, e, events.Metadata{}); err != nil {
		return err
	}
	return f.markFollowers(ctx, tx, e)
}

// putMetadata keeps labels and annotations of an intent; the zero value deletes them.
func putMetadata(ctx context.Context, tx pgx.Tx, e eventlog.Recorded, m events.Metadata) error {
	if m.Equal(events.Metadata{}) {
		_, err := tx.Exec(ctx, `delete from installer.metadata where tenant = $1 and kind = $2 and subject = $3`,
			e.Tenant, e.StreamID.Kind, e.Envelope.Subject)
		return err
	}
	_, err := tx.Exec(ctx, `insert into installer.metadata (tenant, kind, subject, metadata) values ($1, $2, $3, $4)
		on conflict (tenant, kind, subject) do update set metadata = excluded.metadata`, e.Tenant, e.StreamID.Kind,
		e.Envelope.Subject, m)
	return err
}

// fillMetadata adds labels and annotations of what the cluster mirrors.
func (h *Hub) fillMetadata(ctx context.Context, tx pgx.Tx, m *protocol.ScopePlans) error {
	if m.Settings.Mirror != events.MirrorAll {
		return nil
	}
	at := m.Scope.Cluster + "/" + m.Scope.Namespace + "/"
	if err := h.readMetadata(ctx, tx, m.Scope.Tenant, events.KindOperatorGroup, at+m.OperatorGroup.Name,
		&m.OperatorGroup.Metadata); err != nil {
		return err
	}
	for i := range m.Subscriptions {
		s := &m.Subscriptions[i]
		if err := h.readMetadata(ctx, tx, m.Scope.Tenant, events.KindSubscription, at+s.Name, &s.Metadata); err != nil {
			return err
		}
		if s.Catalog == nil {
			continue
		}
		if err := h.readMetadata(ctx, tx, m.Scope.Tenant, events.KindCatalog, s.Catalog.Subject,
			&s.Catalog.Metadata); err != nil {
			return err
		}
	}
	return nil
}

// readMetadata reads what is noted on one intent. Annotations that were erased are none.
func (h *Hub) readMetadata(ctx context.Context, tx pgx.Tx, tenant string, kind events.Kind, subject string,
	into *protocol.Metadata,
) error {
	var m events.Metadata
	err := tx.QueryRow(ctx, `select metadata from installer.metadata where tenant = $1 and kind = $2 and subject = $3`,
		tenant, kind, subject).Scan(&m)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	into.Labels = m.Labels
	body, err := readBody(ctx, tx, h.c.Bodies, tenant, m.Annotations)
	if err != nil || body == nil {
		return err
	}
	return errs.Wrap(errs.Internal, json.Unmarshal(body, &into.Annotations), "read the annotations of %s %s", kind,
		subject)
}
