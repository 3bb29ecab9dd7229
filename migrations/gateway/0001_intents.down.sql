drop view gateway_api.cluster_credentials;
drop view gateway_api.bodies;
drop table gateway.tokens;
drop table gateway.credentials;
drop table gateway.bodies;
