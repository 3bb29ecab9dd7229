-- compatible: 25
-- Which webhooks a tenant tests, and until when no other test of that name begins: also of one that was deleted and made
-- again under the name. gateway.webhooks.test_until is not read any more.
create table gateway.webhook_tests (
  tenant text        not null,
  name   text        not null,
  until  timestamptz not null,
  primary key (tenant, name)
);
comment on table gateway.webhook_tests is 'tests of webhooks that are under way, or were a moment ago';
select eventlog.protect('gateway.webhook_tests');
-- Since when nobody has sent for a webhook: from the end of a lease until a process has made what waits younger by that
-- (ADR 0064), however many claims of it come to nothing meanwhile. Null while somebody sends.
alter table gateway.webhooks add column unsent_since timestamptz;
