revoke execute on function eventlog.at_work(text), eventlog.hold_work(text)
  from chandler_gateway, chandler_resolver, chandler_installer, chandler_catalog_indexer;
