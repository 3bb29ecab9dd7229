drop function gateway.end_sealing(), gateway_api.sealed_kinds();
drop table gateway.sealed_kinds;
