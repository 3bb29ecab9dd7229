-- Which cloud's short-lived tokens operators of a cluster get (R-TOK-1), '' for none. The projection is made again from the log.
alter table gateway.clusters add column token_auth text not null default '';
