drop table installer.replicas;
