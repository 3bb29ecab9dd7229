-- compatible: 25
-- What tenants may have and ask for at most (ADR 0058), as the last event of each says. Who makes a subscription or a
-- catalog locks the row until the transaction ends, so that two do not exceed it together.
create table gateway.quotas (
  tenant        text        not null primary key,
  subscriptions bigint,               -- bounds; null: none
  catalogs      bigint,
  requests      bigint,               -- a second, of all identities
  streams       bigint,               -- open at once
  updated       timestamptz not null
);
comment on table gateway.quotas is 'what each tenant may have and ask for at most; no row: no bounds';
select eventlog.protect('gateway.quotas');
