-- compatible: 20
-- Which actions there are is the gateway's to say (services/gateway/preview): a list here had to change with each.
alter table gateway.read_audit
  drop constraint read_audit_action_check,
  add constraint read_audit_action_check check (action ~ '^[a-z]+([.][a-z]+)*$');
