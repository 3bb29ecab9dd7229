drop function eventlog.exchange_keys(text, bytea);
drop table eventlog.service_keys;
