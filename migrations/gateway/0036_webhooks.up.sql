-- compatible: 25
-- Webhooks: which events are sent to whom (ADR 0059). Rows are written in the transactions of the events webhook.*; address
-- and secrets are sealed, and stand here alone.
create table gateway.webhooks (
  tenant       text        not null,
  name         text        not null,
  stream       text        not null, -- of the events of this life of the name
  version      bigint      not null, -- of the stream
  spec         jsonb       not null, -- events.WebhookSpec
  owner        jsonb       not null, -- events.WebhookOwner
  disabled     text        not null default '', -- why it was given up
  active       boolean     not null, -- neither suspended nor disabled
  host         text        not null, -- of the address, which people see
  key_id       text        not null, -- of the key that sealed
  sealed       bytea       not null, -- address and secrets
  created      timestamptz not null,
  updated      timestamptz not null,
  revision     bigint      not null default 1, -- changes with everything that who sends has to know
  epoch        bigint      not null, -- up to here events have deliveries
  position     bigint      not null,
  lease_owner  text        not null default '', -- the process that sends
  lease_until  timestamptz not null default '-infinity',
  last_success timestamptz,
  primary key (tenant, name)
);
comment on table gateway.webhooks is 'webhooks, and which process sends their events';
create index webhooks_free on gateway.webhooks (lease_until) where active;
create index webhooks_leased on gateway.webhooks (lease_owner);
create index webhooks_by_key on gateway.webhooks (key_id, tenant, name);
select eventlog.protect('gateway.webhooks');

create table gateway.webhook_deliveries (
  tenant     text        not null,
  webhook    text        not null,
  id         text        not null, -- webhook-id
  epoch      bigint      not null,
  position   bigint      not null, -- of the event; 0 of a test
  type       text        not null,
  subject    text        not null,
  state      text        not null check (state in ('Pending', 'Delivered', 'Failed', 'Withdrawn')),
  attempts   int         not null default 0,
  first      timestamptz, -- attempt
  next       timestamptz, -- attempt; null: now
  ended      timestamptz,
  status     int         not null default 0, -- of HTTP, of the last attempt
  error      text        not null default '',
  took       interval    not null default '0',
  created    timestamptz not null,
  primary key (tenant, webhook, id),
  foreign key (tenant, webhook) references gateway.webhooks (tenant, name) on delete cascade
);
comment on table gateway.webhook_deliveries is 'what webhooks send and have sent';
create index webhook_deliveries_pending on gateway.webhook_deliveries (tenant, webhook, epoch, position) where state = 'Pending';
create index webhook_deliveries_ended on gateway.webhook_deliveries (tenant, webhook, ended) where state <> 'Pending';
create index webhook_deliveries_listed on gateway.webhook_deliveries (tenant, webhook, created, id);
select eventlog.protect('gateway.webhook_deliveries');
