drop trigger knows_needs on eventlog.readers;
drop function eventlog.knows_needs();
drop function eventlog.need(text);
drop table eventlog.needs;
