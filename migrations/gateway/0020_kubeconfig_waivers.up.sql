-- What an administrator waived for the kubeconfig of a cluster. The projection is made again from the log.
alter table gateway.clusters add column waived text[] not null default '{}';
