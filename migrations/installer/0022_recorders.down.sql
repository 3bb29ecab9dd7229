alter table installer.reports drop column entry;
alter table installer.holders drop column recorder, drop column recorder_epoch, drop column scopes_session,
  drop column scopes, drop column scopes_sum;
