-- compatible: 25
-- Tickets by which a browser opens a stream (ADR 0060): its EventSource sends no header. A row is gone with its first use.
create table gateway.stream_tickets (
  tenant  text        not null,
  hash    bytea       not null check (length(hash) = 32), -- SHA-256 of the ticket
  actor   text        not null,
  url     text        not null, -- path and query that it opens
  caller  jsonb       not null, -- model.Caller, without rights
  expires timestamptz not null,
  primary key (hash)
);
comment on table gateway.stream_tickets is 'tickets that open one stream, once, within seconds';
create index stream_tickets_actor on gateway.stream_tickets (tenant, actor);
create index stream_tickets_expired on gateway.stream_tickets (expires);
select eventlog.protect('gateway.stream_tickets');
