drop function eventlog.skip_parked(text, text, text, bigint, text, text), eventlog.retry_parked(text, text, text),
  eventlog.for_persons(text);
drop table eventlog.skipped;
alter table eventlog.parked drop column body;
comment on table eventlog.parked is 'events that a consumer could not take; retried, never skipped';
