-- Where the gates of rollouts stand. The table has no row: read models are made of its shape (ADR 0043).
-- compatible: 25
alter table gateway.rollouts add column gates jsonb not null default '{}';
