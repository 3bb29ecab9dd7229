-- heard is when a holder was heard last, by the clock of this database: while it speaks, somebody who
-- cannot reach the cluster is not believed.
alter table installer.holders add column heard timestamptz not null default '-infinity';

-- messages is the most that a stream of one incarnation was seen to hold, where nothing is taken out of
-- it on purpose: fewer mean that it lost some. fills counts how often it was to be filled again; what
-- a process remembers of its content holds for one of them.
alter table installer.streams
  add column messages bigint not null default 0,
  add column fills    bigint not null default 0;
