-- What an administrator waived for the kubeconfig of a cluster, as its last event says: what the installer checks a
-- kubeconfig by before anything acts on it.
alter table installer.clusters add column waived text[] not null default '{}';
