-- compatible: 25
-- What was answered to a POST with an Idempotency-Key (ADR 0048), written in the transaction of its intent: a row says
-- that it was carried out. The answer is sealed by the bearer token that asked, which is nowhere stored.
create table gateway.idempotency_keys (
  tenant  text        not null,
  actor   text        not null,
  key     text        not null check (length(key) <= 255),
  request bytea       not null check (length(request) = 32), -- SHA-256 of what was asked
  answer  bytea       not null, -- sealed status, headers and body
  expires timestamptz not null,
  primary key (tenant, actor, key)
);
comment on table gateway.idempotency_keys is 'answers to requests with an Idempotency-Key, until they expire';
create index idempotency_keys_expired on gateway.idempotency_keys (expires);
select eventlog.protect('gateway.idempotency_keys');
