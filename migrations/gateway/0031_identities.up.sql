-- compatible: 25
-- Who signs in at a provider of OpenID Connect, with the actor that events have for them (ADR 0045). The subject of the
-- provider is kept as a digest: it may be an address. Nothing of this is in an event but the ids and the provider's name.
create table gateway.identities (
  tenant   text        not null,
  id       text        not null,
  subject  bytea       not null check (length(subject) = 32), -- SHA-256 of issuer and subject
  provider text        not null,            -- name of it, as the settings have it
  name     text        not null default '', -- for people, as the provider says it
  actor    text        not null,
  disabled boolean     not null default false,
  created  timestamptz not null,
  seen     timestamptz not null,            -- to the hour
  primary key (tenant, id),
  unique (tenant, subject)
);
comment on table gateway.identities is 'who signs in at a provider, with the actor of each; what acts in events is the actor';
create index identities_actor on gateway.identities (tenant, actor);
select eventlog.protect('gateway.identities');
