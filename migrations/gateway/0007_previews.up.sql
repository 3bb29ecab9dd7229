-- What people asked about without changing anything: previews of changes, with what is needed to carry them out as
-- they were announced, and a record of who asked what.

create table gateway.previews (
  tenant         text        not null,
  id             uuid        not null,
  actor          text        not null, -- opaque id of who asked
  asked          timestamptz not null,
  expires        timestamptz not null,
  request        bytea       not null, -- JSON of model.AskPreview; configuration values among it, hence erased with the row
  validate       text        not null, -- strict, lenient or ''
  writes         jsonb       not null, -- the events that the intents came to, and the states that they were decided on
  not_applicable text        not null, -- why it cannot be carried out; '' where it can
  bodies         text[]      not null, -- commitments that are for this preview alone until it is carried out
  applied        timestamptz,
  applied_by     text        not null default '',
  done           jsonb       not null default '[]', -- streams and versions of the events that carried it out
  primary key (tenant, id)
);
comment on table gateway.previews is 'previewed changes until they expire';
create index previews_expired on gateway.previews (expires);

create table gateway.read_audit (
  tenant  text        not null,
  id      uuid        not null,
  at      timestamptz not null,
  actor   text        not null, -- opaque id
  action  text        not null check (action in ('preview', 'preview.read', 'preview.apply', 'shadow')),
  about   text        not null, -- what it was about, by name: no configuration, no free text
  preview uuid, -- its id
  primary key (tenant, id)
);
comment on table gateway.read_audit is 'who asked what and when, of questions that leave no event';
create index read_audit_at on gateway.read_audit (tenant, at);

select eventlog.protect(t) from unnest(array['gateway.previews', 'gateway.read_audit']::regclass[]) as t;
