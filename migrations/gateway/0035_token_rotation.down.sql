alter table gateway.access_log drop column via;
drop index gateway.tokens_previous;
alter table gateway.tokens
  drop constraint tokens_previous_check,
  drop column previous_ends,
  drop column previous,
  drop column used,
  drop column kind;
