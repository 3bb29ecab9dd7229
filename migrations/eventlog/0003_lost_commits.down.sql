drop function eventlog.check_event(bigint, bigint, bytea, text);
