drop index eventlog.streams_bounded;
