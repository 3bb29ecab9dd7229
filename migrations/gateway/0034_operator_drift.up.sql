-- compatible: 25
-- Operators know whether objects of theirs are as Chandler wrote them. The table has no row: read models are made of its
-- shape (ADR 0043).
alter table gateway.operators
  add column drifted       integer not null default 0, -- objects
  add column drift_policy  text    not null default '',
  add column drift_since   timestamptz;
create index operators_drifted on gateway.operators (tenant, cluster, namespace, name) where drifted > 0;
