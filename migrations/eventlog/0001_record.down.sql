drop table eventlog.stops, eventlog.parked, eventlog.checkpoints, eventlog.sequencer, eventlog.epochs,
  eventlog.events, eventlog.appended, eventlog.streams, eventlog.event_types, eventlog.schema_info;
drop function eventlog.protect(regclass);
