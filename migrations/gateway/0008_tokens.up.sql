-- Administrators make tokens for people. A token that was revoked stays with expires in the past, so that it can
-- still be told who an actor was, and so that the first one does not come back with the next start.
alter table gateway.tokens
  add column name  text not null default '', -- for people; it stands in no event
  add column actor text;                     -- who acts with it; null where its id says that
comment on table gateway.tokens is 'who may call the API; what acts in events is the actor, where there is none the id';

alter table gateway.read_audit
  drop constraint read_audit_action_check,
  add constraint read_audit_action_check
    check (action in ('preview', 'preview.read', 'preview.apply', 'shadow', 'token.add', 'token.revoke'));
comment on table gateway.read_audit is 'who asked what and when, of what leaves no event';
