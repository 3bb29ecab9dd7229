-- The installation: what names its streams on NATS, so that two installations never take each other's for their own,
-- and the key by which a hint shows that a process with this database wrote it. A restored backup has the same. Not a
-- tenant's data.
create table eventlog.installation (
  one      boolean     primary key default true check (one),
  id       uuid        not null default gen_random_uuid(),
  hint_key bytea       not null default
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  made     timestamptz not null default now()
);
comment on table eventlog.installation is 'who this installation is; hint_key authenticates hints';
insert into eventlog.installation default values;

grant select on eventlog.installation
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
