drop table resolver.reads, resolver.dirty, resolver.plans, resolver.installed, resolver.operator_groups,
  resolver.subscriptions, resolver.catalogs, resolver.catalog_clock, resolver.scopes, resolver.clusters;
