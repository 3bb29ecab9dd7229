drop function eventlog.note_rebuild(text, bigint, text), eventlog.drop_rebuild(text), eventlog.ask_rebuild(text);
drop table eventlog.rebuilds;
