delete from gateway.read_audit
  where action not in ('preview', 'preview.read', 'preview.apply', 'shadow', 'token.add', 'token.revoke');
alter table gateway.read_audit
  drop constraint read_audit_action_check,
  add constraint read_audit_action_check
    check (action in ('preview', 'preview.read', 'preview.apply', 'shadow', 'token.add', 'token.revoke'));
