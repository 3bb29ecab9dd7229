drop table gateway.erased_bodies;
