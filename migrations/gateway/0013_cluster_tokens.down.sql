alter table gateway.clusters drop column token_auth;
