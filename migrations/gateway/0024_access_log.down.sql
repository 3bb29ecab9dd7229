drop function gateway.keep_access_log(int);
drop table gateway.access_log;
