-- Rollouts that are taken back, who asked for it, and the commitment to what they said. The table has no row: read models
-- are made of its shape (ADR 0043).
-- compatible: 25
alter table gateway.rollouts add column rollback_to integer not null default 0, add column rollback_by text not null default '',
  add column rollback_words text not null default '';
