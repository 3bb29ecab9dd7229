alter table gateway.installplans
  drop column policies, drop column manual_reasons, drop column approvers, drop column approval_seconds, drop column windows,
  drop column consents, drop column approvals;
drop table gateway.approval_policies;
