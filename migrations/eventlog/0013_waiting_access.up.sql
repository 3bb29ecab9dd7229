-- compatible: 9
-- Whoever says that nobody has stopped effects must know of stops that were acknowledged and have no position yet. The
-- inbox may be long just then: the few rows of this kind are found without reading the others.
create index appended_access on eventlog.appended (id) where kind = 'access';
