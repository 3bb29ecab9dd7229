-- What would be decided if something were in the log that is not: kept for a while beside the log, so that it can be
-- shown, read page by page, and turned into the real thing while it still holds.

create table resolver.previews (
  tenant            text        not null,
  id                uuid        not null, -- drawn by the gateway
  asked             timestamptz not null,
  expires           timestamptz not null,
  question          jsonb       not null, -- whatif.Question
  totals            jsonb       not null, -- whatif.Totals of what was read so far
  complete          boolean     not null, -- every scope was read
  reached_cluster   text        not null default '', -- the last one that was
  reached_namespace text        not null default '',
  primary key (tenant, id)
);
comment on table resolver.previews is 'hypothetical events and what they would lead to, until they expire';
create index previews_expired on resolver.previews (expires);

create table resolver.preview_scopes (
  tenant      text  not null,
  id          uuid  not null,
  cluster     text  not null,
  namespace   text  not null,
  fingerprint text  not null, -- of all that the answer rests on
  facts       jsonb not null, -- the same by name, to say what changed
  announced   text  not null, -- digest of what the answer promises
  outlook     jsonb,          -- whatif.Outlook; null where there is no news
  primary key (tenant, id, cluster, namespace),
  foreign key (tenant, id) references resolver.previews (tenant, id) on delete cascade
);
comment on table resolver.preview_scopes is 'what a preview came to in each namespace, and what that rests on';

select eventlog.protect(t) from unnest(array['resolver.previews', 'resolver.preview_scopes']::regclass[]) as t;
