-- compatible: 25
-- Operators know what counts in the place of their own conditions. The table has no row: read models are made of its
-- shape (ADR 0043).
alter table gateway.operators add column overrides jsonb; -- model.Overrides; null without any
