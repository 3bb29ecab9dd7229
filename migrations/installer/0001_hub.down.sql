drop table installer.streams, installer.published, installer.dirty, installer.stops, installer.csvs, installer.plans,
  installer.subscriptions, installer.operatorgroups, installer.clusters;
