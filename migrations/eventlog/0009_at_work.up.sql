-- compatible: 8
-- Whether a consumer's tables are behind the log is for every service to ask; since 0008 nobody may call what is not granted.
grant execute on function eventlog.at_work(text), eventlog.hold_work(text)
  to chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
