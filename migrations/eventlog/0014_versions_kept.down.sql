drop function eventlog.drop_checkpoints(text, text);
drop function eventlog.kept(text);
