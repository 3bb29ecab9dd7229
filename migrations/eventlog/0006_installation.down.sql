drop table eventlog.installation;
