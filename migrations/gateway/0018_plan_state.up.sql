-- Install plans keep the state of their aggregate as it is folded from events; what lists choose by stays in columns. The
-- projection is made again from the log.
delete from gateway.installplans;
alter table gateway.installplans
  drop column generation, drop column component, drop column digest, drop column document, drop column steps, drop column base,
  drop column blocked_class, drop column failed_step, drop column failed_reason, drop column superseded_by, drop column step_log,
  drop column approved_by, drop column approved, drop column proposed, drop column started, drop column policies,
  drop column manual_reasons, drop column approvers, drop column approval_seconds, drop column windows, drop column consents,
  drop column approvals, drop column choices,
  add column state jsonb not null;
