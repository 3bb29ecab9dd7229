-- Who needs an input or an explanation is found by key, however many namespaces there are: the collector asks for each
-- one that is old.
alter table resolver.subscriptions
  add column input text generated always as (outcome ->> 'input') stored,
  add column explanation text generated always as (outcome ->> 'explanation') stored;
alter table resolver.plans add column input text generated always as (state -> 'Proposed' ->> 'input') stored;
create index subscriptions_input on resolver.subscriptions (tenant, input) where input is not null;
create index subscriptions_explanation on resolver.subscriptions (tenant, explanation) where explanation is not null;
create index plans_input on resolver.plans (tenant, input);
comment on column resolver.subscriptions.input is 'digest of what the outcome rests on';
comment on column resolver.subscriptions.explanation is 'digest of why the outcome is a failure';
comment on column resolver.plans.input is 'digest of what the plan rests on';
