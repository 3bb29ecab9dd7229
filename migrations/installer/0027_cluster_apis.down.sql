drop view installer_api.cluster_apis;
