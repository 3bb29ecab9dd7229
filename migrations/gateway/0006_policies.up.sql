-- Approval policies, and what they make of install plans. Plans that are known already were proposed without any.

create table gateway.approval_policies (
  tenant  text        not null,
  name    text        not null,
  spec    jsonb       not null, -- events.ApprovalPolicySpec
  created timestamptz not null,
  updated timestamptz not null,
  stream  text        not null,
  version bigint      not null,
  primary key (tenant, name)
);
comment on table gateway.approval_policies is 'read model: approval policies';
select eventlog.protect('gateway.approval_policies');

alter table gateway.installplans
  add column policies         jsonb  not null default '[]', -- names
  add column manual_reasons   jsonb  not null default '[]',
  add column approvers        int    not null default 0,
  add column approval_seconds bigint not null default 0,
  add column windows          jsonb  not null default '[]', -- events.WindowGroup
  add column consents         jsonb  not null default '[]', -- model.PlanApproval: given, while more are missing
  add column approvals        jsonb  not null default '[]'; -- model.PlanApproval: all that the approval consists of
