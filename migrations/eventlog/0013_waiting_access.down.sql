drop index eventlog.appended_access;
