drop table catalog.decoded;
