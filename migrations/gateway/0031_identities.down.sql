drop table gateway.identities;
