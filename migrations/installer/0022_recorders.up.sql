-- compatible: 21
-- Each cluster has one recorder, and executors report what changes: the rest is a digest over all reports.

-- Which replica records the reports of a cluster. Who takes a cluster over raises the epoch; what is recorded under a
-- lower one is refused in the transaction that would record it.
-- scopes and scopes_sum are the digest over the newest reports of the holder's session that are wholly recorded
-- (protocol.ReportSet), as executors have it in the reports of their clusters.
alter table installer.holders
  add column recorder       text   not null default '',
  add column recorder_epoch bigint not null default 0,
  add column scopes_session uuid, -- whose reports these are
  add column scopes         int    not null default 0,
  add column scopes_sum     bytea  not null default decode(repeat('00', 32), 'hex');

-- What stands for the report in that digest; null: it is not wholly recorded, or comes from an earlier release.
-- digest is that of what the report says, without who says it and when; '' while it is not wholly recorded.
alter table installer.reports add column entry bytea;
