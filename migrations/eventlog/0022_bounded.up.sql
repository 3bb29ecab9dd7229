-- compatible: 8
-- How many subscriptions and catalogs a tenant has is counted when one more is made under a quota (ADR 0058). Without an
-- index that looks at all streams of the tenant. Few streams are in it, so that it is built in a moment.
create index streams_bounded on eventlog.streams (tenant, kind)
  where kind in ('subscription', 'catalog') and not closed;
