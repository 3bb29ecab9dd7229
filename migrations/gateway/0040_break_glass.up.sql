-- compatible: 25
-- The token of a tenant for a bad day (ADR 0051): it works while nobody can sign in, and only in sessions that name a
-- reason. It is in a table of its own: a gateway of before does not know it, and refuses it.
create table gateway.break_glass (
  tenant  text        not null primary key,
  id      text        not null,             -- of the token, which is its actor, too
  hash    bytea       unique check (length(hash) = 32), -- SHA-256 of the token; null when it was revoked
  created timestamptz not null,
  opened  timestamptz,                      -- when its last use began
  reason  text,                             -- commitment to why
  ends    timestamptz check ((ends is null) = (opened is null)) -- when that ends; until then the token lets in
);
comment on table gateway.break_glass is 'tokens that work while nobody can sign in, one a tenant, and when each was used last';
select eventlog.protect('gateway.break_glass');
