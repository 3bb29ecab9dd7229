-- compatible: 25
-- From when a delivery has three days, which it has only while somebody sends (ADR 0064); which claim of a webhook a
-- process has, so that what it lets go is that one; and one test of a webhook at a time.
alter table gateway.webhook_deliveries add column since timestamptz not null default now();
alter table gateway.webhooks add column claim bigint not null default 0; -- its revision
alter table gateway.webhooks add column test_until timestamptz not null default '-infinity';
