drop table gateway.read_audit;
drop table gateway.previews;
